import { TARGET_KINDS } from '../../workflows/shared/record-kinds.ts'
import { secretTarget } from '../model/incoming/secret-fields.ts'
import { targetEntityOf } from '../model/incoming/target-entity.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** What a webhook maps to a sensitive custom field is as secret as what its owner has marked. */

const KIND = `case w.target_entity ${TARGET_KINDS.map((kind) => `when '${targetEntityOf(kind)}' then '${kind}'`).join(' ')} end`

/** SQL: the sensitive custom fields of the kind of the webhook `w`. */
export const SENSITIVE_TARGETS = `coalesce((select d.sensitive from custom_field_definitions d
  where d.organization_id = w.organization_id and d.entity = ${KIND}), '{}')`

export const withTargets = (secretFields: readonly string[], sensitive: readonly string[]): string[] => [
  ...secretFields,
  ...sensitive.map((name) => secretTarget(`custom_fields.${name}`)),
]

/** The settings of a webhook with which its requests are mapped and shown. */
export async function withSensitiveTargets<T extends Pick<IncomingWebhook, 'kind' | 'secret_fields'>>(
  tx: Tenant,
  webhook: T,
): Promise<T> {
  const row = await tx
    .trx('custom_field_definitions')
    .where({ organization_id: tx.organizationId, entity: webhook.kind })
    .first<{ sensitive: string[] } | undefined>('sensitive')
  return { ...webhook, secret_fields: withTargets(webhook.secret_fields, row?.sensitive ?? []) }
}
