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
const UNUSED_DAYS = 1
/** Clients without a grant. Above it the oldest go, so that a flood of registrations shuts nobody out. */
const MAX_UNUSED = 10_000
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
  await system.raw(FORGET_OLDEST, { days: UNUSED_DAYS, most: MAX_UNUSED })
  return row!
}

/** A client that gets its first grant meanwhile is locked or has the later end already, and stays. */
const FORGET_OLDEST = `
  delete from oauth_clients where id in (
    select id from oauth_clients
    where expires_at <= now() + make_interval(days => :days) and id in (
      select id from oauth_clients where expires_at <= now() + make_interval(days => :days)
      order by expires_at desc offset :most)
    for update skip locked)`

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
