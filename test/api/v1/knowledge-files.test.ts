import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { deflateSync } from 'node:zlib'
import { createKey } from '../../support/api.ts'
import { docxParts, lineOf, pdfOf, streamOf, zipOf } from '../../support/document-files.ts'
import { type HttpServer, startHttpServer } from '../../support/http-server.ts'
import { until } from '../../support/until.ts'
import { withApi } from '../../support/with-api.ts'

const COLLECTIONS = '/v1/knowledge/collections'
const PDF = 'application/pdf'
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

describe('a document made of a file', function () {
  this.timeout(120_000)
  const suite = withApi({ EGRESS_ALLOW: '127.0.0.0/8' })
  let collection: string
  let site: HttpServer
  let hanging = 0
  before(async () => {
    const { body } = await suite.api.request('POST', COLLECTIONS, { body: { name: 'Files' } })
    collection = body.id
    site = await startHttpServer((request, response) => {
      if (request.url === '/old') return response.writeHead(302, { location: '/guide.pdf' }).end()
      if (request.url === '/private') return response.writeHead(302, { location: 'http://10.0.0.1/' }).end()
      if (request.url === '/never') return void hanging++
      if (request.url !== '/guide.pdf') return response.writeHead(404).end()
      response.writeHead(200, { 'Content-Type': 'application/octet-stream' })
      response.end(pdfOf([lineOf('Chargebacks take a month')]))
    })
  })
  after(() => site.close())

  const upload = (bytes: Buffer, type: string, query = '?title=File') =>
    suite.api.request('POST', `${COLLECTIONS}/${collection}/documents/upload${query}`, {
      body: bytes,
      headers: { 'Content-Type': type },
    })
  const fetched = (body: object, key?: string) =>
    suite.api.request('POST', `${COLLECTIONS}/${collection}/documents/fetch`, {
      body,
      ...(key ? { key } : {}),
    })
  const titles = async (q: string): Promise<string[]> => {
    const { body } = await suite.api.request('GET', `/v1/knowledge/search?q=${q}&collection_id=${collection}`)
    return body.data.map(({ title }: { title: string }) => title)
  }

  it('is found by the text of a PDF, a Word document, Markdown', async () => {
    const pdf = await upload(
      pdfOf([lineOf('Refunds take five days'), lineOf('Second page')]),
      PDF,
      '?title=Payments&tags=billing&external_id=a',
    )
    equal(pdf.status, 201, JSON.stringify(pdf.body))
    deepEqual([pdf.body.body, pdf.body.tags], ['Refunds take five days\n\nSecond page', ['billing']])
    const docx = await upload(zipOf(docxParts('Shipping', 'Parcels travel three days')), DOCX)
    equal(docx.body.format, 'html')
    match(docx.body.body, /<h1>Shipping<\/h1><p>Parcels travel three days<\/p>/)
    await upload(Buffer.from('# Hours\n\nOpen on weekends'), 'text/markdown', '?title=Hours')
    deepEqual(
      [await titles('refunds'), await titles('parcels'), await titles('weekends')],
      [['Payments'], ['File'], ['Hours']],
    )
    const again = await upload(
      pdfOf([lineOf('Refunds take six days')]),
      PDF,
      '?title=Payments&external_id=a&replace_existing=true',
    )
    deepEqual([again.body.id, again.body.version], [pdf.body.id, 2])
    equal((await upload(pdfOf([lineOf('x')]), PDF, '')).body.detail[0].loc[1], 'title')
  })

  it('are read by a version of unpdf that package.json pins exactly, since its arrays are bounded from outside', () => {
    const { dependencies } = JSON.parse(
      readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
    )
    match(dependencies.unpdf, /^\d+\.\d+\.\d+$/)
  })

  it('is refused with the reason, in bounded memory', async () => {
    const bomb = deflateSync(deflateSync(Buffer.alloc(2 ** 27, 32)))
    const key = Buffer.alloc(32).toString('hex')
    const encrypt = `/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <${key}> /U <${key}> >> /ID [<00> <00>]`
    const before = process.memoryUsage().rss
    for (const [bytes, type, reason] of [
      [
        pdfOf([streamOf(bomb, '[/FlateDecode /FlateDecode]')]),
        PDF,
        /larger than 16000000 bytes|takes too long/,
      ],
      [pdfOf([lineOf('Secret')], { trailer: encrypt }), PDF, /encrypted: remove its password/],
      [pdfOf([streamOf(deflateSync(''))]), PDF, /has no text: it may be a scan/],
      [Buffer.from('%PDF-1.7 nothing'), PDF, /no PDF that can be read/],
      [Buffer.from('PK nothing'), DOCX, /not a zip archive/],
      [zipOf({ 'word/document.xml': Buffer.alloc(2 ** 27, 32) }), DOCX, /more than 100000000 bytes/],
      [zipOf(docxParts('A', 'b'), { flags: 1 }), DOCX, /archive is encrypted/],
      [zipOf({ 'other.xml': '<a/>' }), DOCX, /no Word document/],
      [Buffer.from('d0cf11e0a1b11ae1', 'hex'), DOCX, /encrypted or old Word document/],
      [Buffer.from([0xff, 0xfe, 0xfd]), 'text/plain', /not UTF-8/],
    ] as const) {
      const { status, body } = await upload(bytes, type)
      equal(status, 400, JSON.stringify(body))
      match(body.error.message, reason)
    }
    ok(process.memoryUsage().rss - before < 500_000_000, `${process.memoryUsage().rss - before} bytes more`)
    const other = await upload(Buffer.from('x'), 'image/png')
    deepEqual([other.status, other.body.error.type], [415, 'unsupported_media_type'])
  })

  it('is fetched from a URL, through the egress guard', async () => {
    const { status, body } = await fetched({ url: `${site.url}/old` })
    equal(status, 201, JSON.stringify(body))
    deepEqual(
      [body.title, body.body, body.source_url],
      ['guide.pdf', 'Chargebacks take a month', `${site.url}/old`],
    )
    for (const [path, reason] of [
      ['/none', /answered 404/],
      ['/private', /private or special address/],
    ] as const) {
      const refused = await fetched({ url: `${site.url}${path}` })
      equal(refused.status, 400)
      match(refused.body.error.message, reason)
    }
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['knowledge:write'] })
    equal((await fetched({ url: site.url }, key)).status, 403)
  })
  it('is one of four at once, also if a server or a client never ends', async () => {
    const { body } = await suite.api.request('POST', COLLECTIONS, { body: { name: 'Slow' } })
    const path = `${suite.api.url}${COLLECTIONS}/${body.id}/documents`
    const given = new AbortController()
    const { signal } = given
    const headers = { Authorization: `Bearer ${suite.api.key}`, 'Content-Type': 'application/json' }
    const url = JSON.stringify({ url: `${site.url}/never` })
    const fetches = [1, 2, 3].map(() =>
      fetch(`${path}/fetch`, { method: 'POST', headers, body: url, signal }).catch(() => {}),
    )
    await until(() => hanging === 3)
    const sent = { method: 'POST', headers: { ...headers, 'Content-Type': 'text/plain' }, duplex: 'half' }
    // Again, if one of the short uploads below was earlier and has the place.
    const sendSlowly = (): Promise<unknown> => {
      const endless = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('x')) })
      return fetch(`${path}/upload?title=x`, { ...sent, body: endless, signal } as RequestInit).then(
        ({ status }) => (status === 429 ? sendSlowly() : undefined),
        () => {},
      )
    }
    const slow = sendSlowly()
    await until(async () => (await upload(Buffer.from('x'), 'text/plain')).status === 429)
    const refused = await fetched({ url: `${site.url}/guide.pdf` })
    equal(refused.status, 429)
    match(refused.body.error.message, /limit of 4 documents/)
    given.abort()
    await Promise.all([...fetches, slow])
    await until(async () => (await upload(Buffer.from('x'), 'text/plain')).status === 201)
  })
})
