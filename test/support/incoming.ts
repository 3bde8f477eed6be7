import assert from 'node:assert/strict'
import type { DestinationStream } from 'pino'
import type { MemberRole } from '../../db/model/access/roles.ts'
import type { Answer } from './answer.ts'
import { startApi, type TestApi } from './api.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { sessionHeaders } from './session.ts'

export interface TestWebhook {
  id: string
  url: string
  secret: string
}

/** An API with a signed-in owner, and helpers for tests of incoming webhooks. */
export interface IncomingTest {
  db: TestDatabase
  api: TestApi
  /** Calls /app as the owner; the answer must have the given status, by default any 2xx. */
  app(method: string, path: string, body?: unknown, status?: number): Promise<Answer>
  /** The headers of a new session. */
  signIn(role: MemberRole): Promise<Record<string, string>>
  createWebhook(values?: object): Promise<TestWebhook>
  /** Sends a webhook; `headers` may replace the secret's header. */
  send(webhook: TestWebhook, body: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Log entries, newest first. */
  logs(webhook: TestWebhook): Promise<Answer['body'][]>
  contact(id: string): Promise<Answer['body']>
  close(): Promise<void>
}

/** `env` and `log` as in `startApi`. */
export async function startIncoming(
  env: Record<string, string> = {},
  log?: DestinationStream,
): Promise<IncomingTest> {
  const db = await createTestDatabase()
  const api = await startApi(db, env, log)
  const signIn = (role: MemberRole) => sessionHeaders(db, api, role)
  const session = await signIn('owner')

  async function app(method: string, path: string, body?: unknown, status?: number) {
    const options = { key: null, headers: session, ...(body === undefined ? {} : { body }) }
    const answer = await api.request(method, `/app${path}`, options)
    const right = status === undefined ? answer.status < 300 : answer.status === status
    assert.ok(right, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }

  return {
    db,
    api,
    app,
    signIn,
    createWebhook: async (values = {}) =>
      (await app('POST', '/webhooks/incoming', { name: 'Form', ...values })).body,
    send: (webhook, body, headers = {}) =>
      api.request('POST', `/webhooks/incoming/${webhook.id}`, {
        key: null,
        body,
        headers: { 'X-Webhook-Secret': webhook.secret, ...headers },
      }),
    logs: async (webhook) => (await app('GET', `/webhooks/incoming/${webhook.id}/logs`)).body.data,
    contact: async (id) => (await api.request('GET', `/v1/objects/contacts/${id}`)).body,
    async close() {
      await api.close()
      await db.drop()
    },
  }
}
