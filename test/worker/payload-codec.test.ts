import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@temporalio/client'
import { type DataConverter, defaultPayloadConverter, type Payload } from '@temporalio/common'
import type { PayloadKeys } from '../../db/process/config.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { answerCodec } from '../../worker/codec-endpoint.ts'
import { dataConverterOf } from '../../worker/data-converter.ts'
import { EncryptionCodec } from '../../worker/payload-codec.ts'
import { Sweep } from '../../worker/sweep.ts'
import { requireOwnQueue } from '../../worker/witness.ts'
import { REFRESH } from '../../workflows/bundle/protocol.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { delay, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { historyOf, queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

interface Answer {
  payloads: object[]
  error: { type: string; message: string }
}

const first = randomBytes(32)
const second = randomBytes(32)

describe('what Temporal stores with a PAYLOAD_KEY', () => {
  let db: TestDatabase
  let organizationId: string
  const workers: TestWorker[] = []
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  // The relay of each would start the runs of the next test, too.
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.stop()
  })
  after(() => db?.drop())

  async function start(payloadKeys: PayloadKeys, taskQueue?: string): Promise<TestWorker> {
    const worker = await startWorker(db, { payloadKeys }, taskQueue)
    workers.push(worker)
    return worker
  }
  const failing = {
    name: 'Secretive onboarding',
    nodes: [
      delay('pause', '1500ms'),
      { id: 'halt', type: 'stop', config: { status: 'failed', message: 'The patient is unwell.' } },
    ],
    edges: [edge('pause', 'halt')],
  }

  it('has neither names nor error messages, which the client with the key reads', async () => {
    const worker = await start({ encrypt: first, open: [] })
    const id = await queueRun(db, organizationId, failing)
    assert.equal((await untilRun(db, id)).error?.message, 'The patient is unwell.')
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    await assert.rejects(handle.result(), ({ cause }: Error) => /patient/.test((cause as Error).message))
    const plain = new Client({ connection: worker.connection })
    const history = JSON.stringify(await historyOf(plain, `run:${id}`))
    for (const word of [
      'patient',
      'Secretive',
      'halt',
      Buffer.from('patient').toString('base64').slice(1, -3),
    ])
      assert.ok(!history.includes(word), word)
    assert.equal(await (await handle.describe()).staticSummary(), 'Secretive onboarding (Test)')
    assert.deepEqual((await handle.describe()).memo?.run_id, id)
  })

  it('is read with the keys that open, while another encrypts; without its key it waits', async () => {
    const old = await start({ encrypt: first, open: [] })
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
    await untilRun(db, id, ['running'])
    await old.stop()
    const without = await start({ encrypt: second, open: [] }, old.taskQueue)
    await without.client.workflow.getHandle(`run:${id}`).signal(REFRESH)
    const refused = await until(async () => {
      const events = await historyOf(new Client({ connection: without.connection }), `run:${id}`)
      return events.find(({ workflowTaskFailedEventAttributes: failed }) => failed)
    })
    const failure = refused.workflowTaskFailedEventAttributes?.failure?.encodedAttributes
    const [readable] = await new EncryptionCodec({ encrypt: second, open: [] }).decode([failure!])
    assert.match(Buffer.from(readable!.data!).toString(), /another PAYLOAD_KEY .*PAYLOAD_KEYS_TO_OPEN/)
    const { client, taskQueue } = without
    await new Sweep({ db, client, taskQueue, log: testLog }).once('0 seconds')
    const { stuck_reason } = await db.system('runs').where({ id }).first('stuck_reason')
    assert.match(stuck_reason, /another PAYLOAD_KEY/)
    await without.stop()
    await start({ encrypt: second, open: [first] }, old.taskQueue)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id)).status, 'cancelled')
  })
})

describe('a worker without the PAYLOAD_KEY of its task queue', () => {
  let db: TestDatabase
  let old: TestWorker
  before(async () => {
    db = await createTestDatabase()
    old = await startWorker(db, { payloadKeys: { encrypt: first, open: [] } })
  })
  after(async () => {
    await old?.stop()
    await db?.drop()
  })

  it('is refused until the witness, which it cannot read, is terminated', async () => {
    const own = (dataConverter?: DataConverter) => {
      const client = dataConverter ? new Client({ connection: old.connection, dataConverter }) : old.client
      return requireOwnQueue({ system: db.system, client, taskQueue: old.taskQueue, log: testLog }, false)
    }
    await own()
    const other = dataConverterOf({ encrypt: second, open: [] })
    await assert.rejects(own(other), /cannot be read.*terminate that workflow in Temporal/)
    await old.client.workflow.getHandle(`witness:${old.taskQueue}`).terminate()
    await own(other)
    await assert.rejects(own(), /cannot be read/)
  })
})

describe('the codec endpoint', () => {
  const token = 'a-token-of-16-or-more'
  const uiOrigin = 'https://temporal.example.com'
  const codec = new EncryptionCodec({ encrypt: first, open: [] })
  const server = createServer((request, response) =>
    answerCodec(request, response, request.url!.slice('/codec/'.length), {
      codec,
      token: request.headers['x-test'] === 'local' ? undefined : token,
      uiOrigin,
      log: testLog,
    }),
  )
  let url: string
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/codec`
  })
  after(() => void server.close())

  const toJson = ({ metadata, data }: Payload) => ({
    metadata: Object.fromEntries(
      Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
    ),
    data: Buffer.from(data!).toString('base64'),
  })
  const post = async (verb: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/${verb}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer }
  }

  it('decrypts what the worker encrypted, and encrypts it again', async () => {
    const payload = defaultPayloadConverter.toPayload({ greeting: 'Grüezi' })!
    const [encrypted] = await codec.encode([payload])
    const decoded = await post('decode', { payloads: [toJson(encrypted!), toJson(payload)] })
    assert.equal(decoded.status, 200)
    assert.deepEqual(decoded.body.payloads, [toJson(payload), toJson(payload)])
    const encoded = await post('encode', { payloads: decoded.body.payloads })
    assert.notDeepEqual(encoded.body.payloads, decoded.body.payloads)
    assert.deepEqual((await post('decode', encoded.body)).body, decoded.body)
  })

  it('refuses without the token, another key, other paths and bodies', async () => {
    const refusedWith = async (...args: Parameters<typeof post>) => {
      const { status, body } = await post(...args)
      return [status, body.error.type]
    }
    assert.deepEqual(await refusedWith('decode', {}, { authorization: 'Bearer x' }), [401, 'unauthorized'])
    assert.deepEqual(await refusedWith('steal', {}), [404, 'not_found'])
    assert.deepEqual(await refusedWith('decode', { payloads: [1] }), [400, 'validation_error'])
    const [foreign] = await new EncryptionCodec({ encrypt: second, open: [] }).encode([
      { data: Buffer.from('x') },
    ])
    const { status, body } = await post('decode', { payloads: [toJson(foreign!)] })
    assert.equal(status, 422)
    assert.match(body.error.message, /another PAYLOAD_KEY \([0-9a-f]{8}\): add it to PAYLOAD_KEYS_TO_OPEN/)
  })

  it('without a token answers this machine only, and no page that took its name', async () => {
    const local = { 'x-test': 'local', authorization: '' }
    assert.equal((await post('decode', { payloads: [] }, local)).status, 200)
    assert.equal(
      (await post('decode', { payloads: [] }, { ...local, 'x-forwarded-for': '192.0.2.1' })).status,
      401,
    )
  })

  it('lets the pages of the Temporal UI call it, and no others', async () => {
    const preflight = await fetch(`${url}/decode`, { method: 'OPTIONS', headers: { origin: uiOrigin } })
    assert.deepEqual(
      [preflight.status, preflight.headers.get('access-control-allow-origin')],
      [204, uiOrigin],
    )
    const other = await post('decode', { payloads: [] }, { origin: 'https://evil.example' })
    assert.equal(other.headers.get('access-control-allow-origin'), null)
  })
})

describe('a worker without PAYLOAD_KEY', () => {
  it('stores plain text, and opens what a key encrypted', async () => {
    const { payloadCodecs, failureConverterPath } = dataConverterOf({ open: [first] })
    const payload = defaultPayloadConverter.toPayload('text')!
    assert.equal(failureConverterPath, undefined)
    assert.deepEqual(await payloadCodecs![0]!.encode([payload]), [payload])
    const encrypted = await new EncryptionCodec({ encrypt: first, open: [] }).encode([payload])
    const [opened] = await payloadCodecs![0]!.decode(encrypted)
    assert.equal(defaultPayloadConverter.fromPayload(opened!), 'text')
  })
})
