import { deepEqual, equal, ok } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describedSenders } from '../../../api/app/incoming-senders.ts'
import { SENDERS } from '../../../db/model/incoming/mapping/senders/index.ts'
import type { Verification } from '../../../db/model/incoming/types.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'
import { proven, SENDER_REQUESTS, type SenderRequest, secretFor } from '../../support/sender-requests.ts'

/** With RECORD_SENDERS=1 the test writes the table of the page; otherwise it compares with it. */
const PAGE = new URL('../../../docs/incoming-webhooks.md', import.meta.url)

const HEAD = `| \`sender\` | \`verification\` | a repetition is known by | mapped by its own paths | a contact is |
|---|---|---|---|---|
`
const AFTER = '\n\n### What is stored\n'
const OUTCOMES = `| sender | request | outcome | record |
|---|---|---|---|
`
const AFTER_OUTCOMES = '\n\n## Sources that are polled\n'

const rows = describedSenders().map(
  ({ id, documentation, verification, delivery_id, answers_ping, sends_batches, maps, person }) => {
    const extra = `${answers_ping ? ', pings' : ''}${sends_batches ? ', batches' : ''}`
    const own = verification.type === 'hmac' ? ` (\`${verification.header}\`)` : ''
    const kinds = maps.length > 0 ? maps.join(', ') : '—'
    return `| [\`${id}\`](${documentation})${extra} | \`${verification.type}\`${own} | ${delivery_id} | ${kinds} | ${person ?? '—'} |`
  },
)

/** Writes the rows of a table of the page with RECORD_SENDERS, and else compares them. */
function compare(head: string, lines: string[], after: string): void {
  const page = readFileSync(PAGE, 'utf8')
  const [begin, end] = [page.indexOf(head), page.indexOf(after)]
  ok(begin > 0 && end > begin, 'the page has the head of the table, and the chapter after it')
  const written = `${page.slice(0, begin)}${head}${lines.join('\n')}${page.slice(end)}`
  if (process.env.RECORD_SENDERS) writeFileSync(PAGE, written)
  else equal(page, written)
}

describe('the table of senders in the documentation', () => {
  it('is that of the registry: RECORD_SENDERS=1 writes it again', () => compare(HEAD, rows, AFTER))

  it('has the documentation of each sender, once', () => {
    equal(new Set(rows).size, rows.length)
    for (const { documentation, delivery_id } of describedSenders()) {
      ok(documentation.startsWith('https://'), documentation)
      ok(delivery_id.length > 0, documentation)
    }
  })
})

describe('the table of what is stored of senders', function () {
  this.timeout(120_000)
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const KINDS: Record<string, string> = { Contact: 'contacts', Task: 'tasks' }
  const SHOWN = [
    'first_name',
    'last_name',
    'email',
    'phone',
    'job_title',
    'timezone',
    'lifecycle_stage',
    'do_not_contact',
    'tags',
    'title',
    'body',
    'due_at',
    'due_date',
    'address',
    'external_id',
  ]

  /** The fields of the record that have a value. */
  async function stored(kind: string, id: string): Promise<string> {
    const { body } = await test.api.request('GET', `/v1/objects/${kind}/${id}`)
    const shown = SHOWN.flatMap((name) => {
      const value = body[name]
      const isNone = value === null || value === undefined || value === false || String(value) === ''
      if (isNone) return []
      if (name === 'address')
        return Object.entries(value).flatMap(([part, text]) => (text ? [`${part} \`${text}\``] : []))
      return [`${name} \`${value}\``]
    })
    const company =
      body.company_id && (await test.api.request('GET', `/v1/objects/companies/${body.company_id}`)).body
    return [...shown, ...(company ? [`company \`${company.name}\``] : [])].join(', ')
  }

  /** All that requests can write, value by value: an update shows in its version and time. */
  const contents = async () =>
    Promise.all(
      ['contacts', 'tasks', 'companies', 'notes', 'runs'].map(async (table) => {
        const rows = await test.db.system(table)
        return [table, ...rows.map((row) => JSON.stringify(row)).sort()]
      }),
    )

  /** The messages of an answer, of a batch those of its records. */
  const messagesOf = ({ message, results }: Record<string, unknown>): unknown[] =>
    Array.isArray(results) ? results.flatMap(messagesOf) : [message]

  const repeated = (message: unknown) =>
    /: nothing was written$/.test(String(message)) ? message : 'already received'

  /** Sends a request right, again, and forged. @returns its row. */
  async function rowOf(one: SenderRequest): Promise<string> {
    const known = SENDERS.get(one.sender)
    const verification = (one.verification ?? known!.verification) as Verification
    const { target = 'Contact' } = one
    const webhook = await test.createWebhook({
      ...(known ? { sender: one.sender } : { verification, dedupe_window: 300 }),
      secret: secretFor(verification),
      target_entity: target,
      ...(target === 'Task' && { deduplication: { by: 'external_id' } }),
    })
    const post = (isForged: boolean) => {
      const { query, ...request } = proven(one, verification, webhook.url, isForged)
      return test.api.request('POST', `/webhooks/incoming/${webhook.id}${query}`, { key: null, ...request })
    }
    const before = await contents()
    const forged = await post(true)
    equal(forged.status, 401, `${one.sender}: ${JSON.stringify(forged.body)}`)
    deepEqual(await contents(), before, `${one.sender}, forged`)
    const first = await post(false)
    equal(first.status, 200, `${one.sender}: ${JSON.stringify(first.body)}`)
    const after = await contents()
    const again = await post(false)
    equal(again.status, 200, JSON.stringify(again.body))
    deepEqual(await contents(), after, `${one.sender}, twice`)
    deepEqual(again.headers.get('content-type'), first.headers.get('content-type'))
    const logged = (await test.logs(webhook)).map(({ action, message, record_id }) => ({
      action,
      message,
      record_id,
    }))
    const isXml = typeof first.body === 'string'
    if (!isXml)
      deepEqual(messagesOf(again.body), messagesOf(first.body).map(repeated), `${one.sender}, twice`)
    deepEqual(new Set(logged.slice(0, logged.length / 2).map(({ action }) => action)), new Set(['Skipped']))
    const { record_id, action, message } = isXml
      ? { ...logged.at(-2), action: 'created, acknowledged' }
      : first.body
    const record = record_id ? await stored(KINDS[target]!, record_id) : '—'
    await test.db.system('contacts').delete()
    await test.db.system('companies').delete()
    return `| ${one.sender} | ${one.what} | ${record_id ? action : message} | ${record} |`
  }

  it(`is what ${SENDER_REQUESTS.length} requests leave; each forged one is refused, and each that comes twice is stored once`, async () => {
    const lines: string[] = []
    for (const one of SENDER_REQUESTS) lines.push(await rowOf(one))
    deepEqual(
      [...SENDERS.keys()].filter((id) => !SENDER_REQUESTS.some(({ sender }) => sender === id)),
      [],
      'each known sender has a request',
    )
    compare(OUTCOMES, lines, AFTER_OUTCOMES)
  })
})
