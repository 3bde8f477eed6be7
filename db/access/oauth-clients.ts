import type { Knex } from 'knex'
import { newClientId } from '../model/access/oauth-format.ts'
import type { System } from '../postgres/tenancy.ts'

/** A client of OAuth: a program that a member may let act for them. None has a secret (RFC 6749, 2.1: public). */
export interface OAuthClient {
  /** A generated one, or the https URL of the client's metadata document. */
  id: string
  /** What it calls itself. */
  name: string
  redirect_uris: string[]
}

/** How long a client stays without a grant. */
const UNUSED_DAYS = 30
/** How long it stays after a grant, so that it can ask again without another registration. */
const USED_DAYS = 365

/** Stores a client that registered itself (RFC 7591). */
export async function registerClient(
  system: System,
  { name, redirect_uris }: Omit<OAuthClient, 'id'>,
): Promise<OAuthClient & { created_at: Date }> {
  const [row] = await system('oauth_clients')
    .insert({ id: newClientId(), name, redirect_uris, expires_at: inDays(system, UNUSED_DAYS) })
    .returning<(OAuthClient & { created_at: Date })[]>(['id', 'name', 'redirect_uris', 'created_at'])
  return row!
}

/** A client that registered itself; undefined if it is unknown or has expired. */
export const findRegisteredClient = (system: System, id: string): Promise<OAuthClient | undefined> =>
  system('oauth_clients')
    .where({ id })
    .whereRaw('expires_at > now()')
    .first<OAuthClient | undefined>('id', 'name', 'redirect_uris')

/** Keeps a client that a member has given a grant. Does nothing for one with a metadata document. */
export async function keepClient(system: System, id: string): Promise<void> {
  await system('oauth_clients')
    .where({ id })
    .update({ expires_at: inDays(system, USED_DAYS) })
}

const inDays = (system: Knex, days: number) => system.raw('now() + make_interval(days => ?)', [days])
