import { invalid } from '../../db/model/errors.ts'
import { isTarget, targetNames } from '../../db/model/incoming/mapping/targets.ts'
import { isWithinSecret } from '../../db/model/incoming/secret-fields.ts'
import type { IncomingWebhook, TargetKind } from '../../db/model/incoming/types.ts'
import { normalise, SYNONYMS } from '../../db/model/records/synonyms.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { finderBy } from '../../db/records/find-by-key.ts'
import { meantBy } from '../../workflows/language/problems.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import { RECORD_KINDS } from '../../workflows/shared/record-kinds.ts'
import type { Scope } from '../http/scopes.ts'

/** The scopes that a webhook's requests use; the caller who configures it must have them. */
export const scopesOf = ({ kind, workflow_id }: Pick<IncomingWebhook, 'kind' | 'workflow_id'>): Scope[] => [
  `${kind}:write`,
  ...(workflow_id ? (['workflows:run'] as const) : []),
]

/** Throws validation_error for rules whose `to` is not a field of the target. */
export function assertTargets(webhook: Pick<IncomingWebhook, 'field_mapping' | 'kind'>): void {
  const { field_mapping: mapping, kind } = webhook
  if (mapping.mode === 'automatic') return
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

/** Throws validation_error for a workflow input that reads a secret field: the run would get a mask. */
export function assertInputs({
  workflow_inputs,
  secret_fields,
}: Pick<IncomingWebhook, 'workflow_inputs' | 'secret_fields'>): void {
  const issues = Object.entries(workflow_inputs)
    .filter(
      ([, path]) =>
        /^payload[.[]/.test(path) && isWithinSecret(`$${path.slice('payload'.length)}`, secret_fields),
    )
    .map(([input, path]) => ({
      loc: ['body', 'workflow_inputs', input],
      msg: `${path} is in secret_fields: runs see [masked] there`,
      type: 'invalid_value',
      input: path,
      hint: 'read a field of the record that the value is mapped to, such as record.external_id, or take the path out of secret_fields',
    }))
  if (issues.length > 0) throw invalid(issues)
}

/** Throws validation_error for a custom field that cannot be a record key. */
export async function assertKey(
  tx: Tenant,
  { kind, deduplication: { by } }: Pick<IncomingWebhook, 'kind' | 'deduplication'>,
): Promise<void> {
  if (!by.startsWith('custom_fields.')) return
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
