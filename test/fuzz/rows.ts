import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Outside } from '../load/outside.ts'
import { prepareTarget } from '../load/target.ts'
import { createExample } from '../support/example-of.ts'
import { asking, CALLBACK, newVerifier } from '../support/oauth.ts'
import { TABLES } from '../support/route-paths.ts'
import type { TestStack } from '../support/stack.ts'

/** The rows with which the fuzzer's requests get past "unauthorized" and "not found". */
export interface Rows {
  key: string
  /** The headers of a session of the owner. */
  session: Record<string, string>
  /** Existing values, by name of the path parameter. */
  ids: Record<string, string[]>
}

/** Parameters whose rows the requests must not lose: the key, session and member that send them. */
const KEPT = ['key_id', 'session_id', 'user_id']

/** Two of each, because some requests delete one. */
const EACH = 2

/** Creates rows of every table that a path names, through the API. */
export async function prepareRows(stack: TestStack, db: Database, outside: Outside): Promise<Rows> {
  const { incoming } = await prepareTarget(stack, outside)
  const send = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const answer = await fetch(stack.apiUrl + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return { headers: answer.headers, body: JSON.parse(text) as Record<string, string> }
  }
  const key = { authorization: `Bearer ${stack.key}` }
  const post = (path: string, body: unknown) => send('POST', `/v1${path}`, key, body)
  const signedIn = await send('POST', '/app/session', {}, stack.owner)
  const session = {
    Cookie: signedIn.headers.get('set-cookie')!.split(';')[0]!,
    'X-CSRF-Token': signedIn.body.csrf_token!,
  }
  const app = (path: string, body: unknown) => send('POST', `/app${path}`, session, body)
  const create = async (kind: KindName, values: object) => {
    const { body } = await post(`/objects/${kind}`, values)
    return { id: body.id! }
  }

  for (let n = 0; n < EACH; n++) {
    for (const kind of kindNames) await createExample(kind, create)
    const created = await post('/imports', { entity: 'contacts' })
    const csv = { ...key, 'content-type': 'text/csv' }
    await send('PUT', `/v1/imports/${created.body.id}/file`, csv, 'Email\r\nada@example.com\r\n')
    await post('/exports', { entity: 'contacts' })
    const erased = await post('/objects/contacts', { first_name: 'Ada', email: `erased${n}@example.com` })
    await post(`/objects/contacts/${erased.body.id}/erase`, { confirm: true })
    await post('/workflows/run-by-name', { name: n === 0 ? 'Long' : 'Quick', confirm: true })
    await post('/views', { entity: 'contacts', name: `View ${n}`, query: { q: 'ada' }, shared: true })
    await post('/lists', { entity: 'contacts', name: `List ${n}`, type: 'static' })
    const charts = [{ title: 'Open deals', query: { metric: 'deals.open_value' } }]
    await post('/analytics/reports', { name: `Report ${n}`, charts })
    await post('/objects/contacts/bulk', {
      action: 'update',
      query: {},
      data: { tags: ['ada'] },
      confirm: true,
    })
    const contact = await post('/objects/contacts', { first_name: 'Ada' })
    const text = { ...key, 'content-type': 'text/plain' }
    await send('POST', `/v1/objects/contacts/${contact.body.id}/files?name=${n}.txt`, text, 'A file.')
    const collection = await post('/knowledge/collections', { name: `Collection ${n}` })
    const document = { title: 'A document', body: 'A text.' }
    await post(`/knowledge/collections/${collection.body.id}/documents`, document)
    await post('/run-batches', { action: 'retry', filter: { status: ['failed'] }, confirm: true })
    const client = await send('POST', '/oauth/register', {}, { redirect_uris: [CALLBACK] })
    await app('/grants', { ...asking(client.body.client_id!, newVerifier()), scopes: ['contacts:read'] })
    await app('/mail-suppressions', { address: `suppressed${n}@example.com` })
    await app('/invitations', { email: `invited${n}@example.com`, role: 'member' })
    await send('POST', incoming.path, { 'x-webhook-secret': incoming.secret }, { email: `b${n}@example.com` })
  }
  await post('/custom-fields/contacts', { name: 'tier', type: 'text' })
  await send('PUT', '/app/secrets/acme_token', session, { value: 'a-value-of-a-secret' })
  for (const direction of ['incoming', 'outgoing']) {
    const { id } = await db.system(`${direction}_webhooks`).first('id')
    const since = new Date(Date.now() - 60_000).toISOString()
    await app(`/webhooks/${direction}/${id}/replays`, { since })
  }
  const ids: Rows['ids'] = { name: ['tier', 'acme_token'], node_id: ['pause', 'greeting'] }
  for (const [, parameter, table] of TABLES) {
    if (KEPT.includes(parameter)) continue
    const found = await db.system(table).limit(EACH).pluck('id')
    if (found.length === 0) throw new Error(`${table} has no row for {${parameter}}`)
    ids[parameter] = [...new Set([...(ids[parameter] ?? []), ...found])]
  }
  return { key: stack.key, session, ids }
}
