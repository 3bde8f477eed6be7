/** Counts of responses by status, and operations without a successful request, from the metrics of the api. */
export async function answered(apiUrl: string): Promise<string[]> {
  const text = await (await fetch(`${apiUrl}/metrics`)).text()
  const statuses = new Map<string, number>()
  const operations = new Map<string, boolean>()
  for (const [, labels, count] of text.matchAll(
    /^agx_http_request_duration_seconds_count\{(.*)\} (\d+)$/gm,
  )) {
    const of = Object.fromEntries(
      [...labels!.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    )
    const operation = `${of.method} ${of.route}`
    statuses.set(of.status!, (statuses.get(of.status!) ?? 0) + Number(count))
    if (of.route === 'none' || of.method === 'HEAD') continue
    operations.set(operation, operations.get(operation) || of.status!.startsWith('2'))
  }
  const refused = [...operations].filter(([, succeeded]) => !succeeded).map(([operation]) => operation)
  return [
    `answers: ${[...statuses]
      .sort()
      .map(([status, count]) => `${status}: ${count}`)
      .join(', ')}`,
    `${operations.size} operations were called, ${refused.length} of them never with success:`,
    ...refused.sort().map((operation) => `  ${operation}`),
  ]
}
