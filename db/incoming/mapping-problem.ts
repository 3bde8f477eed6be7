import type { FieldMapping, IncomingWebhook, MappingRule } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lastRequests } from './last-requests.ts'

/** The fewest requests that tell anything: optional values are often missing. */
const FEWEST = 10

/**
 * What is wrong with the mapping of a webhook, by its last requests: which were plainly of another sender than the chosen
 * one, and which rules wrote nothing. Null if nothing is, or too few requests came since the webhook was changed. Reads the
 * log, where each entry has the rules that it applied.
 */
export async function mappingProblem(tx: Tenant, webhook: Mapping): Promise<string | null> {
  const { sender, field_mapping } = webhook
  if (sender === null && field_mapping.mode === 'automatic') return null
  const rows = await lastRequests<Row>(tx, webhook, {
    columns: `mapped_data -> 'sources' as sources, mapped_data ->> 'sender' as sender,
      mapped_data ->> 'expected_sender' as expected`,
    where: `mapped_data -> 'sources' is not null and coalesce(mapped_data ->> 'skip', '') not like 'ping of %'`,
  })
  const problems = [foreignIn(rows), unmatchedIn(rows, field_mapping)].filter((one) => one !== undefined)
  return problems.length > 0 ? problems.join('; ') : null
}

type Mapping = Pick<IncomingWebhook, 'id' | 'sender' | 'field_mapping' | 'updated_at'>

interface Row {
  sources: Record<string, string>
  sender: string | null
  /** The chosen sender, if the request was of another one. */
  expected: string | null
}

function foreignIn(rows: Row[]): string | undefined {
  const foreign = rows.filter(({ expected }) => expected !== null)
  const [newest] = foreign
  return (
    newest &&
    `${foreign.length} of the last ${rows.length} requests: of ${newest.sender}, and not of ${newest.expected}, the sender of the webhook; correct the sender, or who calls the URL`
  )
}

function unmatchedIn(rows: Row[], field_mapping: FieldMapping): string | undefined {
  if (rows.length < FEWEST || field_mapping.mode === 'automatic') return undefined
  const unmatched = field_mapping.rules.filter(({ to }, place, rules) => {
    // The log has the last rule that wrote to a field: one before it may have written, too.
    const own = rules.slice(place).flatMap((rule) => (rule.to === to ? rule.from : []))
    return rows.every(({ sources }) => !own.includes(sources[to]!))
  })
  return unmatched.length === 0 ? undefined : sentence(unmatched, rows.length)
}

/** Rules that the sentence names. */
const MOST = 5

function sentence(rules: MappingRule[], requests: number): string {
  const named = rules.slice(0, MOST).map(({ from, to }) => `${from} → ${to}`)
  const more = rules.length > MOST ? `, and ${rules.length - MOST} more` : ''
  return `the last ${requests} requests had no value for ${named.join(', ')}${more}: correct the path (mapping/propose shows those of a sample), or remove the rule`
}
