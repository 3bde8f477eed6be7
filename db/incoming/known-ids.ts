import { conflict } from '../model/errors.ts'
import { keyFieldOf } from '../model/incoming/mapping/record-key.ts'
import type { Mapped } from '../model/incoming/mapping/types.ts'
import { entityOf } from '../model/incoming/target-entity.ts'
import type { IncomingWebhook, TargetKind } from '../model/incoming/types.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { upsertKey } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { finderBy } from '../records/find-by-key.ts'

/** The record that has the external_id of a payload. */
export interface Owner {
  id: string
  /** Another record, which has the payload's value of the deduplication's field; undefined if it is the same, or none. */
  other?: string
}

type Webhook = Pick<IncomingWebhook, 'deduplication'> & { kind: TargetKind }

/** The external_id of a payload that is looked up by another field. */
export const idBeside = (webhook: Webhook, { fields }: Mapped): string | undefined =>
  keyFieldOf(webhook) === 'external_id' ? undefined : upsertKey('external_id', fields)

/**
 * The records that have the external_id of payloads which are looked up by another field. No two records have one
 * external_id: a user whom the sender knows by it is the same person under another email.
 */
export async function ownersOf<T extends { mapped: Mapped }>(
  tx: Tenant,
  webhook: Webhook,
  all: T[],
): Promise<Map<T, Owner>> {
  const { kind } = webhook
  const owners = new Map<T, Owner>()
  const wanted = all.filter(({ mapped }) => idBeside(webhook, mapped) !== undefined)
  if (wanted.length === 0) return owners
  const byId = await finderBy(tx, kind, 'external_id')
  const found = await byId.find(wanted.flatMap(({ mapped }) => byId.keyOf(mapped.fields) ?? []))
  for (const one of wanted) {
    const [id] = found.get(byId.keyOf(one.mapped.fields) ?? '') ?? []
    if (id !== undefined) owners.set(one, { id })
  }
  const by = keyFieldOf(webhook)
  const keyed = [...owners].filter(([{ mapped }]) => upsertKey(by, mapped.fields) !== undefined)
  if (keyed.length === 0) return owners
  const byField = await finderBy(tx, kind, by)
  const others = await byField.find(keyed.flatMap(([{ mapped }]) => byField.keyOf(mapped.fields) ?? []))
  for (const [{ mapped }, owner] of keyed) {
    const ids = others.get(byField.keyOf(mapped.fields) ?? '') ?? []
    if (ids.length > 0 && !ids.includes(owner.id)) owner.other = ids[0]!
  }
  return owners
}

/**
 * The outcome of a payload whose two keys are of two records: neither is written, as either may be wrong. A known sender
 * would end the webhook if its events were refused; of another sender, and for an opt-out, it is an error.
 */
export function ofTwoRecords(
  webhook: Webhook,
  mapped: Mapped,
  id: string,
  other: string,
): { action: 'skipped'; record: null; warnings: string[] } {
  const { kind } = webhook
  const by = keyFieldOf(webhook)
  const message = `the external_id is that of the ${entityOf(kind)} ${id}, and the ${by} that of another, ${other}: nothing was written; merge the two, or correct one of them`
  if (mapped.sender !== undefined && mapped.fields.do_not_contact !== true)
    return { action: 'skipped', record: null, warnings: [message] }
  const { object } = kinds[kind]
  throw conflict(message, {
    param: 'external_id',
    candidates: [id, other].map((one) => ({ object, id: one })),
  })
}
