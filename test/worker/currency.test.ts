import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { parseRates } from '../../activities/rates/parse.ts'
import { RateSource } from '../../activities/rates/source.ts'
import { SHIPPED_RATES } from '../../workflows/shared/shipped-rates.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

/** The XML of the European Central Bank; the second day is from its longer file. */
const XML = `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01">
  <gesmes:subject>Reference rates</gesmes:subject>
  <Cube><Cube time='2026-01-05'>
    <Cube currency='USD' rate='1.2000'/><Cube currency='JPY' rate='150.50'/>
  </Cube><Cube time="2026-01-02"><Cube currency="USD" rate="1.9"/><Cube currency="CHF" rate="0.9"/></Cube></Cube>
</gesmes:Envelope>`

describe('the conversion of a currency', () => {
  let db: TestDatabase
  let organizationId: string
  let worker: TestWorker
  let http: HttpClient
  let server: HttpServer
  let url: string
  let calls = 0
  let reply: { status: number; type: string; body: string }
  const xml = { status: 200, type: 'text/xml', body: XML }

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    server = await startHttpServer((_, response) => {
      calls++
      response.writeHead(reply.status, { 'content-type': reply.type }).end(reply.body)
    })
    url = `${server.url}/rates`
    http = createHttp({ allow: ['127.0.0.1/32'] })
    worker = await startWorker(db, { http: http.call, ratesUrl: url })
  })
  beforeEach(() => {
    calls = 0
    reply = xml
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    await server?.close()
    await db?.drop()
  })

  const convert = async (config: Record<string, unknown>, attempts = 2) => {
    const retry = { max_attempts: attempts, initial_interval: '10ms' }
    const node = { id: 'convert', type: 'convert_currency', config, ...(config.rate ? {} : { retry }) }
    const id = await queueRun(db, organizationId, { nodes: [node] })
    const { error } = await untilRun(db, id)
    const row = await db.system('run_nodes').where({ run_id: id }).first()
    return { error, row }
  }

  it('waits for a source that is out of order', async () => {
    reply = { status: 503, type: 'text/html', body: 'later' }
    const { error, row } = await convert({ amount: '60', from: 'USD', to: 'EUR' })
    deepEqual([error?.code, row.attempt], ['rates_unavailable', 2])
    match(error!.message, /it answered 503/)
  })

  it('takes the rates that ship with the service at the third attempt, and says their date', async () => {
    reply = { status: 503, type: 'text/html', body: 'later' }
    const { row } = await convert({ amount: '100', from: 'JPY', to: 'USD' }, 3)
    const { date, rates } = SHIPPED_RATES
    const { amount, rates_date, rates_source } = row.output
    deepEqual([rates_date, rates_source, row.attempt], [date, 'shipped', 3])
    equal(amount, ((100 * Number(rates.USD)) / Number(rates.JPY)).toFixed(2))
    ok(Object.keys(rates).length >= 25 && Date.parse(date) > Date.parse('2026-10-01'))
    const { error } = await convert({ amount: '1', from: 'JPY', to: 'USD', max_age: '1d' }, 3)
    equal(error?.code, 'rates_too_old')
    const offline = new RateSource(http.call, 'shipped')
    equal(await offline.latest({ signal: new AbortController().signal, timeoutMs: 5_000 }), SHIPPED_RATES)
  })

  it('has the rates and their date from the source, which is asked once', async () => {
    const { row } = await convert({ amount: '60', from: 'USD', to: 'EUR' })
    const output = {
      amount: '50.00',
      currency: 'EUR',
      rate: '0.8333333333',
      rates_date: '2026-01-05',
      rates_source: 'service',
    }
    deepEqual(row.output, output)
    equal((await convert({ amount: '2', from: 'USD', to: 'JPY' })).row.output.amount, '251')
    equal(calls, 1)
    const { error } = await convert({ amount: '60', from: 'USD', to: 'EUR', max_age: '5d' })
    equal(error?.code, 'rates_too_old')
  })

  it('takes a rate of its own, in the transaction of the run', async () => {
    const { row } = await convert({ amount: '10', from: 'USD', to: 'EUR', rate: '0.9' })
    deepEqual([row.output.amount, row.output.rates_date, calls], ['9.00', null, 0])
  })

  it('reads JSON, and refuses what has no rates', async () => {
    const source = () => new RateSource(http.call, url)
    const options = { signal: new AbortController().signal, timeoutMs: 5_000 }
    const body = JSON.stringify({ base: 'USD', date: '2026-01-05', rates: { EUR: 0.8, BAD: -1, JPY: '150' } })
    reply = { status: 200, type: 'application/json', body }
    const table = { base: 'USD', date: '2026-01-05', rates: { EUR: '0.8', JPY: '150' } }
    deepEqual(await source().latest(options), table)
    for (const wrong of [
      '',
      '<html></html>',
      '{}',
      null,
      [],
      { base: 'EUR', date: 'today', rates: { USD: 1 } },
    ])
      equal(parseRates(wrong), undefined, JSON.stringify(wrong))
  })
})
