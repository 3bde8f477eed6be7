import type { Actor } from '../model/actor.ts'
import { type KindName, referencesOf, userFields } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { HistoryEntry } from './history.ts'

/** SQL: the name of a record that a field can refer to. */
const RECORD_NAMES: Partial<Record<KindName, string>> = {
  contacts: "coalesce(nullif(concat_ws(' ', first_name, last_name), ''), email, phone)",
  companies: 'name',
}

/** SQL by what an id names: selects `id` and `name` of those among the ids. */
const NAMES = {
  user: `select u.id, u.name from memberships m join users u on u.id = m.user_id
         where m.organization_id = ? and u.id = any(?)`,
  key: 'select id, name from api_keys where organization_id = ? and id = any(?)',
  webhook: 'select id, name from incoming_webhooks where organization_id = ? and id = any(?)',
  workflow_run: `select r.id, w.name from runs r
                 join workflows w on w.organization_id = r.organization_id and w.id = r.workflow_id
                 where r.organization_id = ? and r.id = any(?)`,
} satisfies Record<Exclude<Actor['type'], 'system'>, string>

/**
 * The entries with `names`: of their actors, and of the users and records in their changes, by id. A record of a kind
 * that is not `readable` has no name, as one that is gone.
 */
export async function withNames(
  tx: Tenant,
  kind: KindName,
  entries: HistoryEntry[],
  readable: readonly KindName[],
): Promise<(HistoryEntry & { names: Record<string, string> })[]> {
  const wanted = new Map<string, Set<string>>()
  const want = (what: string, id: unknown) => {
    if (typeof id === 'string') wanted.set(what, (wanted.get(what) ?? new Set()).add(id))
  }
  const named = fieldsWithIds(kind, readable)
  for (const { actor, changes } of entries) {
    want(actor.type, actor.id)
    for (const [field, what] of named) {
      want(what, changes[field]?.from)
      want(what, changes[field]?.to)
    }
  }
  const found = await readNames(tx, wanted)
  return entries.map((entry) => {
    const ids = [
      entry.actor.id,
      ...[...named.keys()].flatMap((field) => [entry.changes[field]?.from, entry.changes[field]?.to]),
    ]
    const names = ids.flatMap((id): [string, string][] => {
      const name = typeof id === 'string' ? found.get(id) : undefined
      return name === undefined ? [] : [[id as string, name]]
    })
    return { ...entry, names: Object.fromEntries(names) }
  })
}

/** The fields whose values are ids, each with what they name. */
function fieldsWithIds(kind: KindName, readable: readonly KindName[]): Map<string, string> {
  const references = referencesOf(kinds[kind]).filter(([, { to }]) => readable.includes(to))
  return new Map([
    ...userFields(kinds[kind]).map((name): [string, string] => [name, 'user']),
    ...references.map(([name, { to }]): [string, string] => [name, to]),
  ])
}

async function readNames(tx: Tenant, wanted: Map<string, Set<string>>): Promise<Map<string, string>> {
  const parts = [...wanted].flatMap(([what, ids]) => {
    const name = RECORD_NAMES[what as KindName]
    const sql = name
      ? `select id, ${name} as name from ${what} where organization_id = ? and id = any(?) and deleted_at is null`
      : NAMES[what as keyof typeof NAMES]
    return sql ? [{ sql, bindings: [tx.organizationId, [...ids]] }] : []
  })
  if (parts.length === 0) return new Map()
  const { rows } = await tx.trx.raw<{ rows: { id: string; name: string | null }[] }>(
    parts.map(({ sql }) => `(${sql})`).join(' union all '),
    parts.flatMap(({ bindings }) => bindings) as never,
  )
  return new Map(rows.flatMap(({ id, name }) => (name === null ? [] : [[id, name]])))
}
