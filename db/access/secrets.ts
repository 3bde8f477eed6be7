import { SECRETS } from '../../workflows/shared/limits.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'
import { recordChange } from './audit-log.ts'

/** A secret of the organization as the settings show it: without its value. */
export interface Secret {
  name: string
  created_at: Date
  updated_at: Date
}

const COLUMNS = ['name', 'created_at', 'updated_at']

/** The secrets, sorted by name. */
export async function listSecrets(tx: Tenant): Promise<Secret[]> {
  const rows: Secret[] = await secrets(tx).select(COLUMNS)
  return rows.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Creates or replaces a secret. Throws `conflict` above `SECRETS.count` and `SECRETS.total`. */
export async function putSecret(tx: Tenant, key: SecretsKey, name: string, value: string): Promise<Secret> {
  // Serialises concurrent creations, so that they cannot exceed the limit together.
  await tx.trx('organizations').where({ id: tx.organizationId }).forNoKeyUpdate().first('id')
  const others = await secrets(tx)
    .whereNot({ name })
    .first<{ count: string; sealed: string }>(
      tx.trx.raw('count(*) as count, coalesce(sum(length(sealed)), 0) as sealed'),
    )
  if (Number(others?.count) >= SECRETS.count)
    throw conflict(`the organization already has ${SECRETS.count} secrets`, { hint: 'delete an unused one' })
  // Sealed, three bytes have four characters.
  if (Math.floor((Number(others?.sealed) * 3) / 4) + Buffer.byteLength(value) > SECRETS.total)
    throw conflict(`the secrets of the organization would have more than ${SECRETS.total} bytes together`, {
      hint: 'delete an unused one',
    })
  const sealed = seal(key, value, ownerOfSecret(tx.organizationId, name))
  const [row] = await tx
    .trx('secrets')
    .insert({ organization_id: tx.organizationId, name, sealed })
    .onConflict(['organization_id', 'name'])
    .merge({ sealed, updated_at: tx.trx.fn.now() })
    .returning<Secret[]>(COLUMNS)
  await recordChange(tx, 'secret.stored', { id: name, name })
  return row!
}

/** Throws `not_found`. */
export async function deleteSecret(tx: Tenant, name: string): Promise<void> {
  if ((await secrets(tx).where({ name }).delete()) === 0) throw notFound('secret')
  await recordChange(tx, 'secret.deleted', { id: name, name })
}

/** The secrets of the organization, opened. Undefined for a secret that was sealed with another SECRETS_KEY. */
export async function openSecrets(tx: Tenant, key: SecretsKey): Promise<Map<string, string | undefined>> {
  const rows: { name: string; sealed: string }[] = await secrets(tx).select('name', 'sealed')
  return new Map(
    rows.map(({ name, sealed }) => [name, opened(key, sealed, ownerOfSecret(tx.organizationId, name))]),
  )
}

function opened(key: SecretsKey, sealed: string, owner: string): string | undefined {
  try {
    return open(key, sealed, owner)
  } catch {
    return undefined
  }
}

const secrets = (tx: Tenant) => tx.trx('secrets').where({ organization_id: tx.organizationId })

/** The owner that a secret is sealed for. */
export const ownerOfSecret = (organizationId: string, name: string) => `${organizationId}.${name}`
