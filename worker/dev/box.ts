import type { Bootstrapped } from '../../db/access/bootstrap.ts'

export interface BoxContents {
  apiUrl: string
  temporalUiUrl: string | undefined
  dataDir: string
  /** What this start made; it is shown now and never again. */
  made: Bootstrapped | undefined
}

/** What a newcomer needs next, as lines to print. Not framed at the sides, so that it can be copied. */
export function box({ apiUrl, temporalUiUrl, dataDir, made }: BoxContents): string {
  const line = '─'.repeat(78)
  const rows = [
    ['API', apiUrl],
    ['API reference', `${apiUrl}/docs`],
    ...(temporalUiUrl ? [['Temporal UI', temporalUiUrl]] : []),
    ...(made
      ? [
          ['Demo key', `${made.apiKey}  (shown once)`],
          ['Owner', `${made.email}, password ${made.password}  (shown once)`],
        ]
      : []),
    ['Data and logs', dataDir],
  ]
  const curl = made
    ? `curl -H "Authorization: Bearer ${made.apiKey}" ${apiUrl}/v1/me`
    : `curl ${apiUrl}/readyz`
  return [
    line,
    '  agx is ready. Ctrl-C stops it.',
    '',
    ...rows.map(([name, value]) => `  ${name!.padEnd(14)}${value}`),
    '',
    '  Try:',
    `  ${curl}`,
    line,
    '',
  ].join('\n')
}
