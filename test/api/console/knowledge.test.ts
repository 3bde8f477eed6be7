import assert from 'node:assert/strict'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { assertEscaped, EVIL } from '../../support/markup.ts'
import { withApi } from '../../support/with-api.ts'

describe('the knowledge base in the console', () => {
  const suite = withApi()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  /** @returns the path of a new collection. */
  async function collect(name: string): Promise<string> {
    const { location, html } = await member.submit('/knowledge/collections/new', '/knowledge/collections', {
      name,
      description: EVIL,
    })
    assert.match(location!, /done=created$/, textOf(html))
    return location!.split('?')[0]!
  }

  it('is empty at first, and says how it begins', async () => {
    const { html } = await member.get('/knowledge')
    assert.match(html, /No collection yet/)
    assert.match(html, /href="\/knowledge\/collections\/new"/)
  })

  it('takes texts, finds their passages, and shows why', async () => {
    const collection = await collect(EVIL)
    assert.match((await owner.get(collection)).html, /No document yet/)
    const made = await member.submit(`${collection}/documents/new`, `${collection}/documents`, {
      title: EVIL,
      body: `# Refunds\n\nRefunds take five business days. ${EVIL}\n\n# Invoices\n\nInvoices are mailed.`,
      format: 'markdown',
      tags: `billing\n${EVIL}`,
      source_url: 'https://help.example.com/payments',
    })
    assert.match(made.location!, /^\/knowledge\/documents\/[\w-]{36}\?done=created$/, textOf(made.html))
    const document = made.location!.split('?')[0]!
    const found = await member.get('/knowledge/search?q=refunds')
    assert.match(found.html, /<mark>Refunds<\/mark> take five business days/)
    assert.match(found.html, /0\.\d\d/)
    assert.match(found.html, /has every word/)
    assert.ok(found.html.includes(`href="${document}"`))
    for (const page of [
      '/knowledge',
      '/knowledge/search?q=refunds',
      collection,
      `${collection}/edit`,
      document,
      `${document}/edit`,
    ])
      assertEscaped((await owner.get(page)).html)
    assert.match((await owner.get('/knowledge/search?q=unicorns')).html, /Nothing found/)
    assert.match((await owner.get(`${collection}?tags=nothing`)).html, /No document matches/)
    assert.equal((await owner.get('/knowledge/search')).status, 422)

    const edited = await member.submit(`${document}/edit`, document, { title: 'Payments', tags: 'billing' })
    assert.equal(edited.location, `${document}?done=saved`, textOf(edited.html))
    const id = document.split('/').at(-1)!
    const { body } = await suite.api.request('GET', `/v1/knowledge/documents/${id}`)
    assert.deepEqual([body.title, body.tags, body.version], ['Payments', ['billing'], 2])
    assert.match(body.body, /^# Refunds\n\nRefunds take five/)
    const removed = await member.submit(document, `${document}/delete`, {})
    assert.equal(removed.location, `${collection}?done=removed`)
    assert.equal((await owner.get(document)).status, 404)
    const gone = await owner.submit(collection, `${collection}/delete`, {})
    assert.equal(gone.location, '/knowledge?done=removed')
  })

  it('says what is wrong at the fields, and keeps what was typed', async () => {
    const collection = await collect('Wrong')
    const { status, html } = await owner.submit(`${collection}/documents/new`, `${collection}/documents`, {
      title: '',
      body: 'Kept as it was typed',
      source_url: 'nowhere',
    })
    assert.equal(status, 422)
    for (const field of ['title', 'source_url']) assert.match(html, new RegExp(`href="#f-${field}"`))
    assert.match(html, /Kept as it was typed<\/textarea>/)
    const twice = await owner.submit('/knowledge/collections/new', '/knowledge/collections', {
      name: 'WRONG',
    })
    assert.equal(twice.status, 409)
    assert.match(twice.html, /role="alert"/)
  })

  it('notices that another tab changed a document, and leaves one that is too long to the API', async () => {
    const collection = await collect('Tabs')
    const make = async (body: string) => {
      const path = `/v1/knowledge/collections/${collection.split('/').at(-1)}/documents`
      const made = await suite.api.request('POST', path, { body: { title: 'Long', body } })
      return `/knowledge/documents/${made.body.id}`
    }
    const short = await make('Some text.')
    const [first, second] = [
      formOf((await owner.get(`${short}/edit`)).html, short),
      formOf((await owner.get(`${short}/edit`)).html, short),
    ]
    assert.equal((await owner.post(short, { ...first, title: 'One' })).status, 303)
    const late = await owner.post(short, { ...second, title: 'Two' })
    assert.equal(late.status, 412)
    assert.ok(late.html.includes('value="Two"'))

    const body = 'A sentence of some words. '.repeat(4_000)
    const long = await make(body)
    for (const page of [long, `${long}/edit`]) {
      const { html } = await owner.get(page)
      assert.ok(Buffer.byteLength(html) < 60_000, `${page}: ${Buffer.byteLength(html)} bytes`)
    }
    const saved = await owner.submit(`${long}/edit`, long, { title: 'Longer' })
    assert.equal(saved.location, `${long}?done=saved`, textOf(saved.html))
    const stored = (await suite.api.request('GET', `/v1/knowledge/documents/${long.split('/').at(-1)}`)).body
    assert.deepEqual([stored.title, stored.body], ['Longer', body])
  })

  it('takes files of the types that it can read', async () => {
    const collection = await collect('Files')
    const form = `${collection}/documents/new?from=file`
    const send = async (name: string, content: string, fields: Record<string, string> = {}) => {
      const shown = formOf((await member.get(form)).html, `${collection}/upload`)
      return member.upload(`${collection}/upload`, { ...shown, ...fields }, new File([content], name))
    }
    const made = await send('manual.md', '# Warranty\n\nTwo years.', { title: EVIL, tags: 'a\nb' })
    assert.match(made.location!, /^\/knowledge\/documents\/[\w-]{36}\?done=created$/, textOf(made.html))
    const id = /documents\/([\w-]{36})/.exec(made.location!)![1]
    const { body } = await suite.api.request('GET', `/v1/knowledge/documents/${id}`)
    assert.deepEqual(
      [body.title, body.body, body.format, body.tags],
      [EVIL, '# Warranty\n\nTwo years.', 'markdown', ['a', 'b']],
    )
    const untitled = await send('plain.txt', 'Some text')
    assert.equal(untitled.status, 422)
    assert.match(untitled.html, /href="#f-title"/)
    const image = await send('photo.png', 'PNG', { title: 'Photo', tags: 'kept' })
    assert.equal(image.status, 415)
    assert.match(image.html, /are not read/)
    assert.match(image.html, /kept<\/textarea>/)
    const none = await send('', '', { title: 'None' })
    assert.equal(none.status, 422)
    assert.match(none.html, /href="#f-file"/)
  })

  it('fetches a document from an address only for those who may send requests', async () => {
    const collection = await collect('Fetched')
    const form = `${collection}/documents/new?from=address`
    assert.match((await owner.get(form)).html, /name="url"/)
    assert.doesNotMatch((await member.get(`${collection}/documents/new`)).html, /from=address/)
    const refused = await owner.submit(form, `${collection}/fetch`, { url: 'http://127.0.0.1:1/x' })
    assert.ok(refused.status >= 400)
    assert.match(refused.html, /role="alert"/)
    assert.match(refused.html, /value="http:\/\/127\.0\.0\.1:1\/x"/)
    const { csrf_token } = formOf((await member.get('/')).html, '/sign-out')
    const sent = { csrf_token: csrf_token as string, url: 'https://example.com/' }
    assert.equal((await member.post(`${collection}/fetch`, sent)).status, 403)
  })
})
