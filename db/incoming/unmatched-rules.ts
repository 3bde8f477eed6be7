import type { IncomingWebhook, MappingRule } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The requests that are looked at, and the fewest that tell anything: optional values are often missing. */
const REQUESTS = 100
const FEWEST = 10

/** The log entries among which they are looked for: anybody can add refused ones. */
const ENTRIES = 1_000

/**
 * Which rules of a webhook wrote nothing in its last requests, as a sentence; null if each did, or too few requests
 * came since the webhook was changed. Reads the log, where each entry has the rules that it applied.
 */
export async function mappingProblem(
  tx: Tenant,
  { id, field_mapping, updated_at }: Pick<IncomingWebhook, 'id' | 'field_mapping' | 'updated_at'>,
): Promise<string | null> {
  if (field_mapping.mode === 'automatic') return null
  const { rows } = await tx.trx.raw<{ rows: { sources: Record<string, string> }[] }>(
    `select mapped_data -> 'sources' as sources from (
       select mapped_data, replay_of, created_at from incoming_logs
       where organization_id = :organizationId and webhook_id = :id order by id desc limit :entries) l
     where replay_of is null and created_at >= :updatedAt
       and mapped_data -> 'sources' is not null
       and coalesce(mapped_data ->> 'skip', '') not like 'ping of %'
     limit :requests`,
    { organizationId: tx.organizationId, id, updatedAt: updated_at, entries: ENTRIES, requests: REQUESTS },
  )
  if (rows.length < FEWEST) return null
  const unmatched = field_mapping.rules.filter(({ to }, place, rules) => {
    // The log has the last rule that wrote to a field: one before it may have written, too.
    const own = rules.slice(place).flatMap((rule) => (rule.to === to ? rule.from : []))
    return rows.every(({ sources }) => !own.includes(sources[to]!))
  })
  return unmatched.length === 0 ? null : sentence(unmatched, rows.length)
}

/** Rules that the sentence names. */
const MOST = 5

function sentence(rules: MappingRule[], requests: number): string {
  const named = rules.slice(0, MOST).map(({ from, to }) => `${from} → ${to}`)
  const more = rules.length > MOST ? `, and ${rules.length - MOST} more` : ''
  return `the last ${requests} requests had no value for ${named.join(', ')}${more}: correct the path (mapping/propose shows those of a sample), or remove the rule`
}
