import pg from 'pg'
import type { MemberRole } from '../../db/model/access/roles.ts'
import type { Scope } from '../../db/model/access/scopes.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { liftLimits } from '../bench/setup.ts'
import { prepareRows } from '../fuzz/rows.ts'
import { type Outside, startOutside } from '../load/outside.ts'
import { createKey, type TestApi } from '../support/api.ts'
import { createOrganization, type TestDatabase } from '../support/database.ts'
import { noteSecretsOf } from '../support/made-secrets.ts'
import { sessionHeaders } from '../support/session.ts'
import { type Smtp, startSmtp } from '../support/smtp.ts'
import { LOCAL_ONLY, startStack, type TestStack } from '../support/stack.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
}

/** One side of the attacks. */
export interface Party {
  organizationId: string
  /** With every scope. */
  key: string
  keyWith(scopes: readonly Scope[]): Promise<string>
  /** The id of a new file of a new contact. */
  file(text: string): Promise<string>
  /** The headers of a new session. */
  session(role: MemberRole): Promise<Record<string, string>>
}

/** A running stack with two organizations: one that attacks, and one with rows of every kind that it must not reach. */
export interface Ground {
  stack: TestStack
  db: Database
  attacker: Party
  victim: Party
  /** Every text of the victim's records contains it. */
  mark: string
  /** The victim's id in a table. Throws if it has no row. */
  victimId(table: string): Promise<string>
  send(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer>
  /** Runs `work` as the owner of the database. */
  asOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T>
  /** The mail server of the stack. */
  smtp: Smtp
  stop(): Promise<void>
}

export async function startGround(): Promise<Ground> {
  const smtp = await startSmtp()
  const stack = await startStack({
    env: {
      ...LOCAL_ONLY,
      ALLOW_INSECURE_WEBHOOKS: 'true',
      SIGN_UP: 'open',
      // Links are mailed only with both.
      PUBLIC_URL: 'http://localhost:8080',
      SMTP_URL: smtp.url,
      MAIL_FROM: 'crm@example.com',
    },
  }).catch(async (error) => {
    await smtp.close()
    throw error
  })
  const db = connect({ url: stack.databaseUrl })
  const outside = await startOutside()
  const stop = async () => {
    await db.close()
    await stack.stop()
    await outside.close()
    await smtp.close()
  }
  try {
    return { ...(await prepare(stack, db, outside)), smtp, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type Prepared = Omit<Ground, 'smtp' | 'stop'>

const MARK = 'victimsmark'

async function prepare(stack: TestStack, db: Database, outside: Outside): Promise<Prepared> {
  const victimOrganization = await liftLimits(db)
  await prepareRows(stack, db, outside)
  const attackerOrganization = await createOrganization(db, { name: 'Attacker' })
  await liftLimits(db)
  const send: Ground['send'] = async (method, path, headers, body) => {
    const raw = typeof body === 'string'
    const isTyped = body === undefined || 'Content-Type' in headers
    const response = await fetch(stack.apiUrl + path, {
      method,
      headers: { ...(isTyped ? {} : { 'Content-Type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    })
    const text = await response.text()
    noteSecretsOf(response.headers, text)
    return { status: response.status, headers: response.headers, text }
  }
  const party = async (organizationId: string): Promise<Party> => {
    const keyWith = async (scopes?: readonly Scope[]) =>
      (await createKey(db as TestDatabase, organizationId, scopes && { scopes })).key
    const key = await keyWith()
    const bearer = { Authorization: `Bearer ${key}` }
    const idOf = async (answer: Promise<Answer>): Promise<string> => JSON.parse((await answer).text).id
    return {
      organizationId,
      key,
      keyWith,
      async file(text) {
        const contact = await idOf(send('POST', '/v1/objects/contacts', bearer, { last_name: text }))
        const typed = { ...bearer, 'Content-Type': 'text/plain' }
        return idOf(send('POST', `/v1/objects/contacts/${contact}/files?name=${text}.txt`, typed, text))
      },
      session: (role) => sessionHeaders(db, { organizationId } as TestApi, role),
    }
  }
  const ground: Prepared = {
    stack,
    db,
    attacker: await party(attackerOrganization),
    victim: await party(victimOrganization),
    mark: MARK,
    async victimId(table) {
      const column = table === 'memberships' ? 'user_id' : 'id'
      const row = await db.system(table).where({ organization_id: victimOrganization }).first(column)
      if (!row) throw new Error(`the victim has no row in ${table}`)
      return row[column]
    },
    send,
    async asOwner(work) {
      const client = new pg.Client({ connectionString: stack.databaseUrl })
      await client.connect()
      try {
        return await work(client)
      } finally {
        await client.end()
      }
    },
  }
  await ground.victim.file(MARK)
  await markRows(ground)
  return ground
}

/** Writes the mark into rows of the victim, by which a leak is found. */
async function markRows({ send, victim, mark }: Prepared): Promise<void> {
  const post = async (path: string, body: unknown) => {
    const answer = await send('POST', `/v1${path}`, { Authorization: `Bearer ${victim.key}` }, body)
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`)
    return JSON.parse(answer.text) as { id: string }
  }
  await post('/objects/contacts', { last_name: mark, email: `${mark}@example.com` })
  await post('/objects/companies', { name: mark })
  await post('/objects/notes', { body: mark })
  const collection = await post('/knowledge/collections', { name: mark })
  await post(`/knowledge/collections/${collection.id}/documents`, { title: mark, body: mark })
}
