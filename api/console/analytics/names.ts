import { findMetric } from '../../../db/model/analytics/metrics/index.ts'
import { kinds } from '../../../db/model/records/kinds/index.ts'
import type { AnalyticsResult } from '../../../workflows/shared/analytics.ts'
import { isRecordKind, namesOf } from '../records/record.ts'
import type { List, View } from '../route.ts'

/** The names of the users, records, workflows and webhooks by which results are grouped, by id. */
export async function groupNames(
  view: View,
  results: readonly (AnalyticsResult | null)[],
): Promise<Map<string, string>> {
  const references: [kind: string, id: string][] = []
  for (const result of results)
    for (const { group } of result?.rows ?? [])
      for (const [dimension, id] of Object.entries(group)) {
        const kind = id === null ? undefined : referenceOf(result!.metric, dimension)
        if (kind) references.push([kind, id!])
      }
  const isRecord = ([kind]: [string, string]) => kind === 'users' || isRecordKind(kind)
  const lists = [...new Set(references.filter((one) => !isRecord(one)).map(([kind]) => kind))]
  const [names, ...others] = await Promise.all([
    namesOf(view, references.filter(isRecord)),
    ...lists.map((list) => namesOfList(view, list)),
  ])
  return new Map([...names, ...others.flat()])
}

/** The lists of what is no record. */
const LISTS: Record<string, { path: string; id: string }> = {
  workflows: { path: '/app/v1/workflows?limit=200', id: 'workflow_id' },
  requests: { path: '/app/webhooks/incoming?limit=200', id: 'id' },
  deliveries: { path: '/app/webhooks/outgoing?limit=200', id: 'id' },
}

async function namesOfList({ readIfAllowed }: View, list: string): Promise<[string, string][]> {
  const { path, id } = LISTS[list]!
  const found = await readIfAllowed<List<Record<string, string>>>(path)
  return (found?.data ?? []).map((one) => [one[id]!, one.name!])
}

/** The kind or list whose ids the values of a dimension are. */
function referenceOf(name: string, dimension: string): string | undefined {
  const table = findMetric(name)?.source.table ?? ''
  if (dimension === 'workflow_id') return 'workflows'
  if (dimension === 'webhook_id') return table === 'deliveries' ? 'deliveries' : 'requests'
  if (dimension === 'owner_id') return 'users'
  const field = isRecordKind(table) ? kinds[table].fields[dimension] : undefined
  if (field?.type === 'user') return 'users'
  return field?.type === 'reference' ? field.to : undefined
}
