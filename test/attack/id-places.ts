import { z } from 'zod'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'

/** The places of a body or query that take the id of a row, found in its schema. */

type Json = Record<string, unknown>
/** Names of members; `[]` is an item of a list. */
export type Place = readonly string[]

/** Every member of the schema whose format is a UUID. */
export function idPlaces(schema: z.ZodType): Place[] {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Json
  const found = new Map<string, Place>()
  const walk = (value: unknown, place: Place, open: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) return
    const { $ref, format, properties, items, ...others } = value as Json
    if (typeof $ref === 'string') {
      const name = $ref.split('/').at(-1)!
      if (!open.includes(name)) walk((root.$defs as Json)[name], place, [...open, name])
      return
    }
    if (format === 'uuid') found.set(place.join('.'), place)
    for (const [name, member] of Object.entries((properties ?? {}) as Json))
      walk(member, [...place, name], open)
    if (items) walk(items, [...place, '[]'], open)
    for (const name of ['anyOf', 'oneOf', 'allOf'])
      for (const one of (others[name] ?? []) as unknown[]) walk(one, place, open)
  }
  walk(root, [], [])
  return [...found.values()]
}

/** The tables of the rows that members name; `kind` is that of the route. */
const TABLES: Record<string, string> = {
  company_id: 'companies',
  parent_company_id: 'companies',
  contact_id: 'contacts',
  deal_id: 'deals',
  product_id: 'products',
  owner_id: 'memberships',
  assignee_id: 'memberships',
  author_id: 'memberships',
  actor_id: 'memberships',
  record_id: 'contacts',
  view_id: 'views',
  workflow_id: 'workflows',
  run_id: 'runs',
  stubs_from: 'runs',
  parent_run_id: 'runs',
  retry_of: 'runs',
  approval_id: 'run_waits',
  collection_id: 'knowledge_collections',
  log_id: 'incoming_logs',
  replay_id: 'incoming_replays',
  webhook_id: 'outgoing_webhooks',
  organization_id: 'organizations',
}

/** The table of the rows that a place names. Throws for a member that nobody has entered here. */
export function tableAt(place: Place, path: string): string {
  const name = place.at(-1)!
  if (place.at(-2) === '[]' && place.at(-3) === 'associations') return 'contacts'
  // The ids of members.
  if (name === '[]' && path.startsWith('/lists/')) return 'contacts'
  const kind = /^\/objects\/(\w+)\//.exec(path)?.[1]
  if (kind && (name === 'from' || place.join('.') === 'operations.[].id')) return kind
  const table = TABLES[name]
  if (!table) throw new Error(`${place.join('.')} of ${path} has no table in test/attack/id-places.ts`)
  return table
}

/** The kind whose routes have a path. */
export const kindOfPath = (path: string): KindName | undefined => {
  const [, name] = /^\/objects\/(\w+)/.exec(path) ?? []
  return kindNames.find((kind) => kind === name)
}

/** The example with an id at a place, and what it needs beside it. `owners`: own records that the kind requires. */
export function withId(example: unknown, place: Place, path: string, id: string, owners: Json): Json {
  const kind = kindOfPath(path)
  const record = kind && { ...(kinds[kind].example as Json), ...owners }
  const where = place.join('.')
  if (where === 'operations.[].id') return { operations: [{ op: 'update', id, data: { tags: ['x'] } }] }
  if (where.startsWith('operations.[].data.'))
    return { operations: [{ op: 'create', data: put({ ...record }, place.slice(3), id) }] }
  if (path.endsWith('/bulk')) return { action: 'reassign', query: {}, owner_id: id, confirm: true }
  return put(
    { ...structuredClone((example ?? {}) as Json), ...(path === `/objects/${kind}` && owners) },
    place,
    id,
  )
}

function put(target: Json, [name, ...rest]: Place, id: string): Json {
  if (rest.length === 0) return { ...target, [name!]: id }
  if (rest[0] !== '[]') return { ...target, [name!]: put((target[name!] ?? {}) as Json, rest, id) }
  const [, member] = rest
  return {
    ...target,
    [name!]: [name === 'associations' ? { object: 'contacts', [member!]: id } : { [member!]: id }],
  }
}
