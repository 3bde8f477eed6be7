import { type AppError, conflict } from '../model/errors.ts'
import { type AlternateKey, listedKeys } from '../model/records/alternate-keys.ts'
import type { Kind, KindName } from '../model/records/kind.ts'
import type { Write } from '../model/records/prepare.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import { lookupKey } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockLookUps } from './find-by-key.ts'

/**
 * Keeps the alternate keys of a merge for look-ups, and moves those of the loser. The trigger of the kind's table
 * refuses an `external_id` that another record has as an alternate key.
 */
export async function keepKeys(
  tx: Tenant,
  entity: KindName,
  { winnerId, loserId, keys }: { winnerId: string; loserId: string; keys: AlternateKey[] },
): Promise<void> {
  const table = () => tx.trx('alternate_keys')
  const organization_id = tx.organizationId
  await table().where({ organization_id, record_id: loserId }).delete()
  if (keys.length === 0) return
  await table()
    .insert(
      keys.map(({ field, value }) => ({
        organization_id,
        entity,
        field,
        key: lookupKey(field, value),
        record_id: winnerId,
      })),
    )
    .onConflict()
    .ignore()
}

/**
 * Serialises the transactions that give contacts these further email addresses, or look them up, until they end. No
 * statement without such addresses.
 */
export async function lockListed(tx: Tenant, entity: KindName, inputs: RecordInput[]): Promise<void> {
  const keys = inputs.flatMap((input) => emailsAmong(listedKeys(input)))
  if (keys.length > 0) await lockLookUps(tx, entity, 'email', keys)
}

/** The records of `writes` that get a further email address of another live record, or of an earlier one of the set. */
export async function listedElsewhere(
  tx: Tenant,
  { entity, object }: Kind,
  writes: Write[],
): Promise<Map<string, AppError>> {
  const refused = new Map<string, AppError>()
  const added = writes.flatMap(({ record, previous }) => {
    const before = emailsAmong(listedKeys(previous ?? {}))
    return emailsAmong(listedKeys(record)).flatMap((key) =>
      previous && !('other_emails' in previous) ? [] : before.includes(key) ? [] : [{ id: record.id, key }],
    )
  })
  if (added.length === 0) return refused
  const { rows } = await tx.trx.raw<{ rows: { key: string; id: string }[] }>(
    `select key, id from unnest(:keys::text[]) as wanted (key) cross join lateral (
       select id from ${entity} where organization_id = :organization and email_lower = key and deleted_at is null
       union all
       select r.id from alternate_keys a
       join ${entity} r on r.organization_id = a.organization_id and r.id = a.record_id
       where a.organization_id = :organization and a.entity = :entity and a.field = 'email' and a.key = wanted.key
         and r.deleted_at is null
       limit 100) holder`,
    { keys: added.map(({ key }) => key), organization: tx.organizationId, entity } as never,
  )
  const holders = new Map<string, string[]>()
  const hold = (key: string, id: string) => holders.set(key, [...(holders.get(key) ?? []), id])
  for (const { key, id } of rows) hold(key, id)
  for (const { id, key } of added) {
    const other = holders.get(key)?.find((holder) => holder !== id)
    if (other !== undefined)
      refused.set(
        id,
        conflict(`another ${object} has the email ${key}`, {
          param: 'other_emails',
          hint: `its id is ${other}: merge the two, or remove the address there`,
        }),
      )
    else hold(key, id)
  }
  return refused
}

const emailsAmong = (keys: AlternateKey[]): string[] =>
  keys.flatMap(({ field, value }) => (field === 'email' ? lookupKey(field, value) : []))

/** The fields whose changes change the keys of a record. */
const WITH_KEYS = ['other_emails', 'other_phones', 'alternate_keys']

export const changesKeys = ({ changes }: Write): boolean =>
  WITH_KEYS.some((name) => Object.hasOwn(changes, name))

/** Keeps the further addresses of written records for look-ups, with their alternate keys of the same fields. */
export async function keepListed(tx: Tenant, entity: KindName, writes: Write[]): Promise<void> {
  const changed = writes.filter(changesKeys)
  if (changed.length === 0) return
  const keys = changed.flatMap(({ record }) =>
    [...listedKeys(record), ...(record.alternate_keys as AlternateKey[])]
      .filter(({ field }) => LISTED.includes(field))
      .map(({ field, value }) => ({ field, key: lookupKey(field, value), record_id: record.id })),
  )
  await tx
    .trx('alternate_keys')
    .where({ organization_id: tx.organizationId })
    .whereIn(
      'record_id',
      changed.map(({ record }) => record.id),
    )
    .whereIn('field', LISTED)
    .delete()
  if (keys.length > 0)
    await tx
      .trx('alternate_keys')
      .insert(keys.map((key) => ({ organization_id: tx.organizationId, entity, ...key })))
      .onConflict()
      .ignore()
}

const LISTED = ['email', 'phone']
