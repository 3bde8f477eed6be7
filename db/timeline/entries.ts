import { type KindName, kindNames } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { kindOfType, type TimelineType } from '../model/records/timeline.ts'
import { type Delivery, deliverySummaries } from '../outgoing/deliveries.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type HistoryEntry, historyEntries } from '../records/history.ts'
import { type LinkContent, linksTo } from '../records/links.ts'
import { readRecords } from '../records/read.ts'
import { type RunSummary, runSummaries } from '../runs/views.ts'
import type { TimelinePlace } from './list.ts'

/** An entry with its object: the record, change, run or delivery. */
export type TimelineEntry = { at: Date } & (
  | { type: 'record'; data: AgxRecord & { association: LinkContent } }
  | { type: 'change'; data: HistoryEntry }
  | { type: 'run'; data: RunSummary }
  | { type: 'delivery'; data: Delivery }
)

/**
 * What the entries of a page are about, in their order, by one statement for each type. Left out is what was deleted
 * between the two statements.
 */
export async function timelineEntries(
  tx: Tenant,
  kind: KindName,
  id: string,
  places: TimelinePlace[],
): Promise<TimelineEntry[]> {
  const of = (type: TimelineType) => places.filter((place) => place.type === type)
  const idsOf = (type: TimelineType) => of(type).map((place) => place.id)
  const changes = await ifAny(of('change'), (wanted) => historyEntries(tx, wanted))
  const runs = await ifAny(idsOf('run'), (ids) => runSummaries(tx, ids))
  const deliveries = await ifAny(idsOf('delivery'), (ids) => deliverySummaries(tx, ids))
  const records = new Map<string, AgxRecord & { association: LinkContent }>()
  for (const target of kindNames) {
    const ids = places.filter(({ type }) => kindOfType(type) === target).map((place) => place.id)
    const links = await ifAny(ids, () => linksTo(tx, { entity: kind, id }, target, ids))
    for (const [key, record] of await ifAny(ids, () => readRecords(tx, target, ids))) {
      const association = links.get(key)
      if (association) records.set(key, { ...record, association })
    }
  }
  return places.flatMap(({ type, id, version, at }): TimelineEntry[] => {
    if (type === 'change') return entry(type, at, changes.get(`${id} ${version}`))
    if (type === 'run') return entry(type, at, runs.get(id))
    if (type === 'delivery') return entry(type, at, deliveries.get(id))
    return entry('record', at, records.get(id))
  })
}

const entry = <Type extends TimelineEntry['type']>(
  type: Type,
  at: Date,
  data: Extract<TimelineEntry, { type: Type }>['data'] | undefined,
) => (data ? [{ type, at, data } as Extract<TimelineEntry, { type: Type }>] : [])

/** No statement for an empty list. */
const ifAny = async <Item, Found>(items: Item[], read: (items: Item[]) => Promise<Map<string, Found>>) =>
  items.length > 0 ? read(items) : new Map<string, Found>()
