import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { z } from 'zod'
import { SCOPES } from '../model/access/scopes.ts'
import { SYSTEM } from '../model/actor.ts'
import { connect } from '../postgres/connect.ts'
import type { DatabaseUrls } from '../postgres/roles.ts'
import { tenantOf, Wakes } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'
import type { bootstrapVariables } from '../process/config.ts'
import { createKey } from './keys.ts'
import { createUser } from './users.ts'

/** Whether there is no organization yet. Takes a lock, so that concurrent transactions ask one after the other. */
export async function lockFirstOrganization(trx: Knex): Promise<boolean> {
  await trx.raw("select pg_advisory_xact_lock(hashtext('agx bootstrap'))")
  return (await trx('organizations').first('id')) === undefined
}

export type BootstrapOptions = z.output<typeof bootstrapVariables>

/** The result of a first start. The secrets are returned only here. */
export interface Bootstrapped {
  email: string
  password: string
  apiKey: string
}

/**
 * Creates the first organization of an empty database, with an owner and a key with all scopes. Secrets that the
 * options do not set are generated.
 * @returns undefined if an organization exists.
 */
export async function bootstrap(
  urls: DatabaseUrls,
  options: BootstrapOptions,
): Promise<Bootstrapped | undefined> {
  const db = connect({ ...urls, poolSize: 2, applicationName: 'agx bootstrap' })
  try {
    return await transaction(db.system, undefined, async (begun) => {
      const { trx } = begun
      if (!(await lockFirstOrganization(trx))) return undefined
      const organizationId = uuidv7()
      await trx('organizations').insert({
        id: organizationId,
        name: 'Demo',
        plan: 'enterprise',
        is_operators: true,
      })
      const email = options.BOOTSTRAP_EMAIL ?? 'owner@example.com'
      const password = options.BOOTSTRAP_PASSWORD ?? randomBytes(12).toString('base64url')
      await createUser(trx, { email, name: 'Owner', password, organizationId, role: 'owner' })
      const tx = tenantOf(begun, organizationId, SYSTEM, new Wakes())
      const secret = options.BOOTSTRAP_API_KEY ? { secret: options.BOOTSTRAP_API_KEY } : {}
      const { key } = await createKey(tx, { name: 'Demo key', scopes: SCOPES, ...secret })
      return { email, password, apiKey: key }
    })
  } finally {
    await db.close()
  }
}
