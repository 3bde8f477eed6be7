import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import { TARGET_KINDS } from '../../../workflows/shared/record-kinds.ts'
import type { Answer } from '../../support/answer.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'
import { random } from '../../support/random.ts'
import { SENDER_REQUESTS } from '../../support/sender-requests.ts'

/** `FUZZ_CASES=100000` is the long form; `FUZZ_SEED` another selection. */
const CASES = Number(process.env.FUZZ_CASES ?? 200)
const SEED = Number(process.env.FUZZ_SEED ?? 1)
const AT_ONCE = 8
/** Cases that are sent, counted, and sent again. */
const ROUND = 250

interface Case extends Sample {
  n: number
  webhook: TestWebhook
}

interface Sample {
  name: string
  body: Buffer
  type: string
  headers: Record<string, string>
}

describe('mutated payloads of real senders', function () {
  this.timeout(CASES * 100 + 30_000)
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  /** What requests can write, by table; an update of a record is in its history. */
  const written = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      await Promise.all(
        [...TARGET_KINDS, 'notes', 'record_history', 'runs'].map(async (table) => [
          table,
          Number((await test.db.system(table).count({ count: '*' }).first())!.count),
        ]),
      ),
    )

  it(`are accepted or refused, never a 5xx, each is logged, a repetition writes nothing, and the next request is served (${CASES} cases)`, async () => {
    const { next, pick } = random(SEED)
    const all = samples()
    const rules = ['email', 'first_name', 'note_content', 'custom_fields.fuzz', 'tags', 'address.city']
    const workflow_id = await greet(test)
    const settings: object[] = [
      { workflow_id },
      { target_entity: 'Task' },
      { target_entity: 'none', workflow_id },
      { target_entity: 'Company', deduplication: { action: 'Skip', by: 'payload.repository.id' } },
      { target_entity: 'Deal', deduplication: { action: 'Create Anyway' } },
      {
        field_mapping: {
          mode: 'manual',
          rules: rules.map((to, n) => ({
            from: ['sender.login', 'data[email]', 'items[0].a', 'issue.title'][n % 4],
            to,
            transforms: [{ type: 'replace', pattern: '(a+)+$', by: 'x' }, { type: 'trim' }],
          })),
        },
      },
    ]
    const webhooks = await Promise.all(
      settings.map((one) => test.createWebhook({ rate_limit: 100_000, dedupe_window: 86_400, ...one })),
    )
    const statuses: Record<number, number> = {}
    let [slowest, records, repeated] = [0, 0, 0]
    const shotOf = ({ n, name, type }: Case, { body }: Answer) =>
      `case ${n} of seed ${SEED}: ${name}, ${type}: ${JSON.stringify(body).slice(0, 300)}`
    const shoot = async (one: Case): Promise<Answer> => {
      const started = performance.now()
      const answer = await test.send(one.webhook, one.body, { 'Content-Type': one.type, ...one.headers })
      slowest = Math.max(slowest, performance.now() - started)
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
      const shown = shotOf(one, answer)
      assert.ok([200, 400, 413, 415].includes(answer.status), shown)
      // Some get their acknowledgement. Each record of a batch is logged alone.
      assert.equal(isAcknowledged(answer) || answer.body.success, answer.status === 200, shown)
      records += answer.body.results?.length ?? 1
      return answer
    }
    for (let first = 0; first < CASES; first += ROUND) {
      const cases = Array.from({ length: Math.min(ROUND, CASES - first) }, (_, i): Case => {
        const { headers, ...sample } = mutated(pick(all), next, pick)
        const n = first + i
        // Half of the cases have an id of their delivery, the others are known by their body.
        const id: Record<string, string> = n % 2 === 0 ? { 'Idempotency-Key': `fuzz ${n}` } : {}
        return { ...sample, n, webhook: pick<TestWebhook>(webhooks), headers: { ...headers, ...id } }
      })
      const answers = await inOrder(cases, shoot)
      const before = await written()
      // What was refused may be accepted by now: its record has come.
      const accepted = cases.filter((_, i) => isWhole(answers[i]!))
      const again = await inOrder(accepted, shoot)
      assert.deepEqual(await written(), before, `cases ${first} to ${first + cases.length} of seed ${SEED}`)
      for (const [i, one] of accepted.entries()) {
        assert.equal(again[i]!.status, 200, shotOf(one, again[i]!))
        assert.deepEqual(
          recordsIn(again[i]!),
          recordsIn(answers[cases.indexOf(one)]!),
          shotOf(one, again[i]!),
        )
      }
      repeated += accepted.length
    }
    assert.ok(
      (statuses[200] ?? 0) > CASES / 20 && (statuses[400] ?? 0) > CASES / 20,
      JSON.stringify(statuses),
    )
    if (CASES > 1_000)
      process.stdout.write(
        `      ${JSON.stringify(statuses)}, ${repeated} repeated, slowest ${slowest.toFixed(0)} ms\n      ${JSON.stringify(await written())}\n`,
      )
    const { count } = (await test.db.system('incoming_logs').count({ count: '*' }).first())!
    assert.equal(Number(count), records)
    const alive = await test.send(webhooks[0]!, { email: 'alive@fuzz.test' })
    assert.equal(alive.status, 200)
  })
})

const isAcknowledged = ({ body }: Answer) => String(body).includes('<Ack>true</Ack>')

/** Whether a request was accepted, with each of its records. */
const isWhole = (answer: Answer): boolean =>
  answer.status === 200 && (answer.body.results ?? []).every(({ success }: { success: boolean }) => success)

/** The records of an answer, of a batch those of each. An answer as the sender wants it has none. */
const recordsIn = ({ body }: Answer): unknown =>
  (body.results ?? [body]).map(({ record_id }: { record_id?: string }) => record_id)

/** Sends cases, several at once. @returns the answers, in the order of the cases. */
async function inOrder<T, R>(cases: T[], send: (one: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = []
  const next = [...cases.keys()][Symbol.iterator]()
  const take = async () => {
    for (const place of next) answers[place] = await send(cases[place]!)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, take))
  return answers
}

/** An active workflow; no worker runs it. */
async function greet({ api }: IncomingTest): Promise<string> {
  const spec =
    'name: Greet\ntrigger: {type: webhook}\nnodes:\n  a: {type: set_fields, config: {fields: {x: 1}}}\n'
  const { workflow_id } = (await api.request('POST', '/v1/workflows', { body: { spec } })).body
  const { status, body } = await api.request('POST', `/v1/workflows/${workflow_id}/activate`)
  assert.equal(status, 200, JSON.stringify(body))
  return workflow_id
}

/** Events of GitHub as GitHub publishes them, the table of senders, and the fixtures of others. */
function samples(): Sample[] {
  const json = 'application/json'
  const file = createRequire(import.meta.url).resolve('@octokit/webhooks-examples')
  const events: { name: string; examples: object[] }[] = JSON.parse(readFileSync(file, 'utf8'))
  const github = events.flatMap(({ name, examples }) =>
    examples.slice(0, 2).map((example) => ({
      name: `GitHub ${name}`,
      type: json,
      headers: { 'X-GitHub-Event': name },
      body: Buffer.from(JSON.stringify(example)),
    })),
  )
  // The table of senders, so that a new one is mutated too.
  const known = SENDER_REQUESTS.map(
    ({ sender, what, body, type = json, headers = {} }): Sample => ({
      name: `${sender} ${what}`,
      body: Buffer.from(body, 'latin1'),
      type,
      headers,
    }),
  )
  const folder = new URL('../../fixtures/webhooks/', import.meta.url)
  const others = readdirSync(folder).flatMap((file): Sample[] => {
    const body = readFileSync(new URL(file, folder))
    if (file.endsWith('.json')) return [{ name: file, body, type: json, headers: {} }]
    if (file.endsWith('.txt'))
      return [{ name: file, body, type: 'application/x-www-form-urlencoded', headers: {} }]
    const boundary = /^--(\S+)/.exec(body.toString('latin1'))?.[1] ?? 'b'
    return [{ name: file, body, type: `multipart/form-data; boundary=${boundary}`, headers: {} }]
  })
  const xml = Buffer.from(
    '<?xml version="1.0" encoding="UTF-8"?><lead id="1"><name lang="en">Ada &amp; Co</name><email>a@x.test</email></lead>',
  )
  const form = Buffer.from('name=Ada+Lovelace&email=ada%40x.test&address[city]=Z%C3%BCrich&tags[]=a&tags[]=b')
  // Half of the cases have no relation to GitHub.
  const own = [
    ...known,
    ...others,
    { name: 'XML', body: xml, type: 'application/xml', headers: {} },
    { name: 'form', body: form, type: 'application/x-www-form-urlencoded', headers: {} },
  ]
  return [...github, ...Array.from({ length: Math.ceil(github.length / own.length) }, () => own).flat()]
}

type Pick = <T>(from: readonly T[]) => T

const TYPES = [
  'application/json',
  'application/x-www-form-urlencoded',
  'text/xml',
  'application/vnd.api+json',
  'application/json; charset=utf-16',
  'application/json; charset=shift_jis',
  'text/xml; charset=latin1',
  'multipart/form-data; boundary=x',
  'text/plain',
  'x/y',
  '',
]
/** Texts that break parsers, databases and patterns. */
const EVIL = [
  '\0',
  '\ud800',
  '\ufeff',
  '\r\nX-Evil: 1',
  '__proto__',
  'constructor',
  '$.a',
  '{{ a }}',
  "' or 1=1 --",
  'a'.repeat(5_000),
  '[['.repeat(50),
  '{"a":'.repeat(50),
  '%',
  '%zz',
  '&amp;&#0;',
  '<![CDATA[',
  ']]>',
  '=1+1',
  '1e999',
  '-0',
  'NaN',
  '99999999999999999999',
  'null',
  '\u202e',
  '٣',
  '2026-02-31',
  '+41',
  '@',
  '..',
  '%00',
]

/** One to four mutations, of the values if the body is JSON, else of its bytes; sometimes also another type. */
function mutated(sample: Sample, next: () => number, pick: Pick): Sample {
  let { body, type } = sample
  const headers: Record<string, string> = { ...sample.headers }
  for (let n = Math.floor(next() * 4); n >= 0; n--) {
    const choice = next()
    if (choice < 0.45 && type === 'application/json') body = inValues(body, next, pick)
    else if (choice < 0.7) body = inBytes(body, next, pick)
    else if (choice < 0.75) body = body.subarray(0, Math.floor(next() * body.length))
    else if (choice < 0.8) type = pick(TYPES)
    else if (choice < 0.83) headers['X-Fuzz'] = 'ä'.repeat(Math.floor(next() * 200))
  }
  if (next() < 0.05) {
    headers['Content-Encoding'] = pick(['gzip', 'gzip', 'gzip', 'br'])
    if (next() < 0.8) body = gzipSync(body)
  }
  return { ...sample, body, type, headers }
}

function inBytes(body: Buffer, next: () => number, pick: Pick): Buffer {
  const at = Math.floor(next() * (body.length + 1))
  const [head, rest] = [body.subarray(0, at), body.subarray(at)]
  const choice = next()
  if (choice < 0.3) return Buffer.concat([head, Buffer.from(pick(EVIL)), rest])
  if (choice < 0.6) return Buffer.concat([head, Buffer.of(Math.floor(next() * 256)), rest.subarray(1)])
  if (choice < 0.8) return Buffer.concat([head, rest.subarray(Math.floor(next() * 40))])
  return Buffer.concat([head, rest.subarray(0, 200), rest])
}

function inValues(body: Buffer, next: () => number, pick: Pick): Buffer {
  try {
    const value = JSON.parse(body.toString('utf8'))
    const holders: (object | unknown[])[] = []
    const walk = (one: unknown) => {
      if (typeof one !== 'object' || one === null) return
      holders.push(one)
      for (const member of Object.values(one)) walk(member)
    }
    walk(value)
    const holder = pick(holders) as Record<string, unknown>
    const keys = Object.keys(holder)
    if (keys.length === 0) return body
    const key = pick(keys)
    const evil = pick<unknown>([...EVIL, null, true, -1, 1e21, [], {}, [[]], holder[pick(keys)]])
    if (next() < 0.25) holder[typeof evil === 'string' ? evil : 'email'] = holder[key]
    else if (next() < 0.2) delete holder[key]
    else holder[key] = evil
    return Buffer.from(JSON.stringify(value))
  } catch {
    // Bytes were mutated before, or a value contains itself.
    return body
  }
}
