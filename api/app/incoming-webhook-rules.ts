import { invalid } from '../../db/model/errors.ts'
import { furtherKinds, targetOf } from '../../db/model/incoming/further-kinds.ts'
import { isTarget, targetNames } from '../../db/model/incoming/mapping/targets.ts'
import {
  FURTHER_KINDS,
  type FurtherKind,
  type IncomingWebhook,
  type TargetKind,
} from '../../db/model/incoming/types.ts'
import { normalise, SYNONYMS } from '../../db/model/records/synonyms.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { finderBy } from '../../db/records/find-by-key.ts'
import { meantBy } from '../../workflows/language/problems.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import { RECORD_KINDS } from '../../workflows/shared/record-kinds.ts'
import { isWithinSecret } from '../../workflows/shared/secret-paths.ts'
import { allows, type Scope } from '../http/scopes.ts'

type Written = Pick<IncomingWebhook, 'kind' | 'field_mapping' | 'also_writes'>

/** The scopes that a webhook's requests use; the caller who configures it must have them. */
export const scopesOf = ({
  workflow_id,
  listeners,
  source,
  ...written
}: Pick<IncomingWebhook, 'workflow_id' | 'listeners' | 'source'> & Written): Scope[] => [
  ...writeScopesOf(written),
  ...(workflow_id || listeners.length > 0 || written.kind === 'none' ? (['workflows:run'] as const) : []),
  // It sends a secret to a host of its choice, as who writes a workflow can.
  ...(source?.type === 'imap' ? (['workflows:author'] as const) : []),
]

/** An import needs the same for the companies that it creates. */
function writeScopesOf({ kind, also_writes, ...mapping }: Written): Scope[] {
  if (kind === 'none') return []
  const further = furtherKinds({ kind, ...mapping }).filter((one) => also_writes.includes(one))
  return [kind, ...further].map((one) => `${one}:write` as const)
}

/**
 * What the requests of a new webhook write besides, unless it says so itself: what its rules name, and what the caller may
 * write.
 */
export function alsoWrites(
  webhook: Pick<Written, 'kind' | 'field_mapping'>,
  { scopes }: { scopes: ReadonlySet<Scope> },
): FurtherKind[] {
  const named = webhook.field_mapping.mode === 'manual' ? furtherKinds(webhook) : []
  return FURTHER_KINDS.filter((kind) => named.includes(kind) || allows(scopes, `${kind}:write`))
}

/** Throws validation_error for rules whose `to` is not a field of the target, or is what the webhook does not write. */
export function assertMapping(webhook: Written): void {
  assertTargets(webhook)
  assertAlsoWrites(webhook)
}

function assertAlsoWrites(webhook: Written): void {
  const { field_mapping: mapping, also_writes } = webhook
  const unwritten = furtherKinds(webhook).filter((kind) => !also_writes.includes(kind))
  if (mapping.mode === 'automatic') return
  const issues = mapping.rules.flatMap(({ to }, index) => {
    const kind = unwritten.find((one) => targetOf(one) === to)
    if (!kind) return []
    return [
      {
        loc: ['body', 'field_mapping', 'rules', index, 'to'],
        msg: `${to} writes ${kind}, which the webhook does not write`,
        type: 'invalid_value',
        input: to,
        hint: `add ${kind} to also_writes, or omit the rule`,
      },
    ]
  })
  if (issues.length > 0) throw invalid(issues)
}

/** The scopes to read the log: its payloads are those of the records, or of the runs. */
export const logScopesOf = ({ kind }: Pick<IncomingWebhook, 'kind'>): Scope[] => [
  kind === 'none' ? 'workflows:run' : `${kind}:read`,
]

function assertTargets(webhook: Pick<IncomingWebhook, 'field_mapping' | 'kind'>): void {
  const { field_mapping: mapping, kind } = webhook
  if (mapping.mode === 'automatic') return
  if (kind === 'none') throw invalid([unusedWithoutRecords('field_mapping', mapping)])
  const issues = mapping.rules.flatMap(({ to }, index) =>
    isTarget(to, kind)
      ? []
      : [
          {
            loc: ['body', 'field_mapping', 'rules', index, 'to'],
            msg: `${to} is not a mappable field of a ${RECORD_KINDS[kind]}`,
            type: 'invalid_value',
            input: to,
            ...suggestion(to, kind),
          },
        ],
  )
  if (issues.length > 0) throw invalid(issues)
}

/** Throws validation_error for a deduplication of records that there are not. */
export function assertDeduplication(webhook: Pick<IncomingWebhook, 'deduplication' | 'kind'>): void {
  const { deduplication, kind } = webhook
  const { action, by } = deduplication
  if (kind === 'none' && (action !== 'Update' || by !== 'email'))
    throw invalid([unusedWithoutRecords('deduplication', deduplication)])
}

const unusedWithoutRecords = (field: string, input: unknown) => ({
  loc: ['body', field],
  msg: 'has no effect with target_entity none, which writes no record',
  type: 'invalid_value',
  input,
  hint: `omit ${field}`,
})

/**
 * A hint: the field that other systems call `to`, the nearest field name, or the field that other systems call by a
 * similar name.
 */
function suggestion(to: string, kind: TargetKind): { hint: string } {
  const names = targetNames(kind)
  const others = SYNONYMS[kind]
  const name = normalise(to)
  const field =
    others[name]?.field ?? meantBy(to, names) ?? others[nearest(name, Object.keys(others)) ?? '']?.field
  if (field === 'full_name')
    return { hint: 'write two rules, to first_name and last_name, each with the transform split_name' }
  if (field && names.includes(field)) return { hint: `did you mean ${field}?` }
  return { hint: `use custom_fields.<name>, or one of ${names.join(', ')}` }
}

type SecretPlaces = Pick<IncomingWebhook, 'secret_fields' | 'secret_headers'>
type ReadByRuns = Pick<IncomingWebhook, 'workflow_inputs' | 'listeners' | 'trigger_headers'>

/** Throws validation_error for secret values that workflows would read: their runs would get a mask. */
export function assertInputs(webhook: SecretPlaces & ReadByRuns): void {
  const { workflow_inputs, listeners, trigger_headers, secret_headers, secret_fields } = webhook
  const secretInputs = (inputs: Record<string, string>, ...loc: (string | number)[]) =>
    Object.entries(inputs)
      .filter(
        ([, path]) =>
          /^payload[.[]/.test(path) && isWithinSecret(`$${path.slice('payload'.length)}`, secret_fields),
      )
      .map(([input, path]) => ({
        loc: ['body', ...loc, input],
        msg: `${path} is in secret_fields: runs see [masked] there`,
        type: 'invalid_value',
        input: path,
        hint: 'read a field of the record that the value is mapped to, such as record.external_id, or take the path out of secret_fields',
      }))
  const issues = [
    ...secretInputs(workflow_inputs, 'workflow_inputs'),
    ...listeners.flatMap((listener, index) =>
      secretInputs(listener.workflow_inputs, 'listeners', index, 'workflow_inputs'),
    ),
    ...trigger_headers.flatMap((name, index) =>
      secret_headers.includes(name)
        ? [
            {
              loc: ['body', 'trigger_headers', index],
              msg: `${name} is in secret_headers`,
              type: 'invalid_value',
              input: name,
              hint: 'take it out of one of the two',
            },
          ]
        : [],
    ),
  ]
  if (issues.length > 0) throw invalid(issues)
}

/** Throws validation_error for a custom field that cannot be a record key. */
export async function assertKey(
  tx: Tenant,
  { kind, deduplication: { by } }: Pick<IncomingWebhook, 'kind' | 'deduplication'>,
): Promise<void> {
  if (kind === 'none' || !by.startsWith('custom_fields.')) return
  await finderBy(tx, kind, by).catch(() => {
    throw invalid([
      {
        loc: ['body', 'deduplication', 'by'],
        msg: `${by} is not a unique custom field of ${kind}`,
        type: 'invalid_value',
        input: by,
        hint: `use email, external_id, payload.<path>, or define the field as unique: POST /v1/custom-fields/${kind}`,
      },
    ])
  })
}
