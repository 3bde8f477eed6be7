import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { LANGUAGES } from '../../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../../workflows/shared/limits.ts'
import type { Answer } from '../../support/answer.ts'
import { createKey, type RequestOptions } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

const COLLECTIONS = '/v1/knowledge/collections'

describe('the knowledge base', () => {
  const suite = withApi()
  let count = 0

  const send = (method: string, path: string, body?: unknown, options: RequestOptions = {}) =>
    suite.api.request(method, path, { ...(body === undefined ? {} : { body }), ...options })
  async function made(method: string, path: string, body: unknown, options?: RequestOptions) {
    const answer = await send(method, path, body, options)
    ok(answer.status < 300, JSON.stringify(answer.body))
    return answer.body
  }
  /** A new collection, with these documents. @returns its id. */
  async function collection(documents: object[] = [], values: object = {}): Promise<string> {
    const { id } = await made('POST', COLLECTIONS, { name: `Collection ${++count}`, ...values })
    for (const one of documents) await made('POST', `${COLLECTIONS}/${id}/documents`, one)
    return id
  }
  const search = (parameters: Record<string, string>) =>
    send('GET', `/v1/knowledge/search?${new URLSearchParams(parameters)}`)
  const found = async (collection_id: string, q: string, more = {}) => {
    const { body } = await search({ q, collection_id, ...more })
    return body.data as { title: string; text: string; highlight: string; match: string; score: number }[]
  }
  const titles = async (collection_id: string, q: string, more = {}) =>
    (await found(collection_id, q, more)).map(({ title }) => title)
  const invalid = ({ status, body }: Answer) => {
    equal(status, 422, JSON.stringify(body))
    return Object.fromEntries(
      body.detail.map(({ loc, msg }: { loc: string[]; msg: string }) => [loc.slice(1).join('.'), msg]),
    )
  }

  describe('collections', () => {
    it('are created, listed, found by name, changed and deleted', async () => {
      const created = await send('POST', COLLECTIONS, { name: 'Help center', description: 'Answers' })
      equal(created.status, 201)
      equal(created.headers.get('etag'), '"1"')
      const { id, created_at: _, updated_at: __, created_by, updated_by, ...rest } = created.body
      deepEqual(rest, {
        object: 'knowledge_collection',
        name: 'Help center',
        description: 'Answers',
        language: 'english',
        embedding: null,
        documents: 0,
        version: 1,
      })
      deepEqual([created_by.type, updated_by], ['key', created_by])
      await made('POST', `${COLLECTIONS}/${id}/documents`, { title: 'A', body: 'a' })
      equal((await send('GET', `${COLLECTIONS}/${id}`)).body.documents, 1)
      const other = await collection()
      const { body: list } = await send('GET', `${COLLECTIONS}?limit=1`)
      deepEqual([list.data[0].id, list.has_more], [other, true])
      const { body: next } = await send('GET', `${COLLECTIONS}?limit=1&cursor=${list.next_cursor}`)
      equal(next.data[0].id, id)
      deepEqual(
        (await send('GET', `${COLLECTIONS}?name=HELP%20center`)).body.data.map(
          (one: { id: string }) => one.id,
        ),
        [id],
      )
      const changed = await made('PATCH', `${COLLECTIONS}/${id}`, { name: 'Help', description: null })
      deepEqual([changed.name, changed.description, changed.version], ['Help', null, 2])
      equal((await made('PATCH', `${COLLECTIONS}/${id}`, { name: 'Help' })).version, 2)
      const stale = await send(
        'PATCH',
        `${COLLECTIONS}/${id}`,
        { name: 'X' },
        { headers: { 'If-Match': '"1"' } },
      )
      equal(stale.status, 412)
      equal((await send('DELETE', `${COLLECTIONS}/${id}`)).body.deleted, true)
      equal((await send('GET', `${COLLECTIONS}/${id}`)).status, 404)
    })

    it('have names of their own, without regard to case', async () => {
      const first = await collection([], { name: 'Handbook' })
      const second = await send('POST', COLLECTIONS, { name: 'HANDBOOK' })
      deepEqual([second.status, second.body.error.param], [409, 'name'])
      deepEqual(second.body.error.candidates, [{ id: first, name: 'HANDBOOK' }])
      const other = await collection()
      equal((await send('PATCH', `${COLLECTIONS}/${other}`, { name: 'handbook' })).status, 409)
      equal((await made('PATCH', `${COLLECTIONS}/${first}`, { name: 'HandBook' })).name, 'HandBook')
    })

    it('take their documents and passages with them', async () => {
      const id = await collection([{ title: 'Zebra', body: 'stripes' }])
      const { data } = (await send('GET', `${COLLECTIONS}/${id}/documents`)).body
      await send('DELETE', `${COLLECTIONS}/${id}`)
      equal((await send('GET', `/v1/knowledge/documents/${data[0].id}`)).status, 404)
      equal((await search({ q: 'zebra' })).body.data.length, 0)
      equal((await suite.db.system('knowledge_passages').where({ collection_id: id })).length, 0)
    })

    it('are refused with all errors at once', async () => {
      deepEqual(
        Object.keys(invalid(await send('POST', COLLECTIONS, { name: ' ', language: 'klingon', x: 1 }))),
        ['name', 'language', 'x'],
      )
      const id = await collection()
      deepEqual(invalid(await send('PATCH', `${COLLECTIONS}/${id}`, { id: 'x', language: 1 })), {
        language: (
          invalid(await send('PATCH', `${COLLECTIONS}/${id}`, { language: 1 })) as { language: string }
        ).language,
        id: 'is set by the service and cannot be written',
      })
    })

    it('know every language that they accept, and index their documents again in another one', async () => {
      const { rows } = await suite.db.system.raw('select cfgname from pg_ts_config')
      const known = rows.map(({ cfgname }: { cfgname: string }) => cfgname)
      deepEqual(
        LANGUAGES.filter((one) => !known.includes(one)),
        [],
      )
      const id = await collection([{ title: 'Bücher', body: 'Die Häuser der Stadt', tags: ['Orte'] }])
      deepEqual(await titles(id, 'haus'), [])
      await made('PATCH', `${COLLECTIONS}/${id}`, { language: 'german' })
      deepEqual(await titles(id, 'haus buch ort'), ['Bücher'])
      deepEqual((await found(id, 'haus'))[0]!.highlight, 'Die <mark>Häuser</mark> der Stadt')
    })
  })

  describe('documents', () => {
    it('are added, read, changed and deleted, and the next search knows it', async () => {
      const id = await collection()
      const document = {
        title: 'Payments',
        body: '# Refunds\n\nRefunds take five days.',
        format: 'markdown',
        tags: ['billing', 'billing'],
        source_url: 'https://help.example.com/a',
        external_id: 'p-1',
      }
      const added = await send('POST', `${COLLECTIONS}/${id}/documents`, document)
      equal(added.status, 201)
      const { id: document_id, collection_id, tags, passages, version, body } = added.body
      deepEqual([collection_id, tags, passages, version, body], [id, ['billing'], 1, 1, document.body])
      const path = `/v1/knowledge/documents/${document_id}`
      deepEqual((await send('GET', path)).body, added.body)
      const { data } = (await send('GET', `${COLLECTIONS}/${id}/documents?external_id=p-1&tags=billing`)).body
      const { body: _, ...summary } = added.body
      deepEqual(data, [summary])
      deepEqual((await send('GET', `${COLLECTIONS}/${id}/documents?tags=other`)).body.data, [])

      deepEqual(await titles(id, 'refund'), ['Payments'])
      const changed = await made('PATCH', path, { body: 'Vouchers only.', format: 'text', external_id: null })
      deepEqual([changed.version, changed.external_id], [2, null])
      deepEqual([await titles(id, 'refund'), await titles(id, 'voucher')], [[], ['Payments']])
      await made('PATCH', path, { title: 'Coupons' })
      deepEqual(await titles(id, 'coupon'), ['Coupons'])
      equal((await send('PATCH', path, { title: 'x' }, { headers: { 'If-Match': '"1"' } })).status, 412)
      equal((await made('PATCH', path, { title: 'Coupons', tags: ['billing'] })).version, 3)
      equal((await send('DELETE', path)).body.deleted, true)
      deepEqual([(await send('DELETE', path)).status, await titles(id, 'coupon')], [404, []])
    })

    it('replace the one with the same external_id if asked to, and change nothing if they are equal', async () => {
      const id = await collection()
      const path = `${COLLECTIONS}/${id}/documents`
      const first = await made('POST', path, { title: 'A', body: 'apple', external_id: 'x' })
      const again = await send('POST', path, { title: 'A', body: 'pear', external_id: 'x' })
      deepEqual([again.status, again.body.error.candidates], [409, [{ id: first.id }]])
      match(again.body.error.hint, /replace_existing/)
      const replacement = { title: 'A', body: 'pear', external_id: 'x', replace_existing: true }
      const replaced = await made('POST', path, replacement)
      deepEqual([replaced.id, replaced.version, replaced.body], [first.id, 2, 'pear'])
      equal((await made('POST', path, replacement)).version, 2)
      deepEqual([await titles(id, 'apple'), await titles(id, 'pear')], [[], ['A']])
      const other = await made('POST', path, { title: 'B', body: 'b', external_id: 'y' })
      equal((await send('PATCH', `/v1/knowledge/documents/${other.id}`, { external_id: 'x' })).status, 409)
      const elsewhere = await collection()
      await made('POST', `${COLLECTIONS}/${elsewhere}/documents`, { title: 'C', body: 'c', external_id: 'x' })
    })

    it('are made once by concurrent and repeated requests', async () => {
      const id = await collection()
      const path = `${COLLECTIONS}/${id}/documents`
      const body = { title: 'A', body: 'apple', external_id: 'x', replace_existing: true }
      const answers = await Promise.all(Array.from({ length: 6 }, () => send('POST', path, body)))
      deepEqual([...new Set(answers.map(({ status }) => status))], [201])
      equal(new Set(answers.map(({ body }) => body.id)).size, 1)
      const headers = { 'Idempotency-Key': 'add-once' }
      const first = await send('POST', path, { title: 'B', body: 'b' }, { headers })
      const second = await send('POST', path, { title: 'B', body: 'b' }, { headers })
      deepEqual([second.body.id, second.headers.get('idempotency-replayed')], [first.body.id, 'true'])
      equal((await send('GET', path)).body.data.length, 2)
      equal((await found(id, 'apple')).length, 1)
    })

    it('are refused with all errors at once', async () => {
      const id = await collection()
      const path = `${COLLECTIONS}/${id}/documents`
      const problems = invalid(
        await send('POST', path, {
          title: '',
          body: '',
          format: 'pdf',
          tags: [''],
          source_url: 'javascript:alert(1)',
          text: 'x',
        }),
      )
      deepEqual(Object.keys(problems).sort(), ['body', 'format', 'source_url', 'tags.0', 'text', 'title'])
      equal(problems.source_url, 'must be an http or https URL')
      const long = invalid(
        await send('POST', path, { title: 'A', body: 'ä'.repeat(KNOWLEDGE.bytes / 2 + 1) }),
      )
      match(long.body as string, /at most 1000000 bytes/)
      const unknown = `${COLLECTIONS}/019a0000-0000-7000-8000-000000000001/documents`
      equal((await send('POST', unknown, { title: 'A', body: 'a' })).status, 404)
      equal((await send('GET', unknown)).status, 404)
    })

    it('may be as long as a request: divided in a thread, and found by their last words', async () => {
      const id = await collection()
      const body = `${'Lorem ipsum dolor sit amet. '.repeat(30_000)}\n\nThe walrus sleeps.`
      const added = await made('POST', `${COLLECTIONS}/${id}/documents`, { title: 'Long', body })
      ok(added.passages > 500)
      const [passage] = await found(id, 'walrus')
      ok(passage!.text.endsWith('The walrus sleeps.') && passage!.text.length <= KNOWLEDGE.passage)
    })
  })

  describe('a search', () => {
    let id: string
    before(async () => {
      id = await collection([
        {
          title: 'Payments',
          format: 'markdown',
          tags: ['billing', 'customers'],
          body: '# Refunds\n\nA refund takes five business days.\n\n# Invoices\n\nInvoices are sent by email.',
        },
        { title: 'Refunds', body: 'How we pay money back.', tags: ['billing'] },
        { title: 'Shipping', body: 'Parcels travel three days. A refund of the fee is possible.' },
        { title: 'Code', body: 'if (a < b && c > d) { <script>alert("fox")</script> }' },
        {
          title: 'Page',
          format: 'html',
          body: '<h1>Team</h1><p>Our <b>lem</b>urs &amp; bears</p><script>var hidden = "badger"</script><style>.otter{}</style>',
        },
      ])
    })

    it('weighs titles most, and finds the other forms of a word', async () => {
      deepEqual(await titles(id, 'refunding'), ['Refunds', 'Payments', 'Shipping'])
      deepEqual(await titles(id, 'invoice'), ['Payments'])
      deepEqual(await titles(id, 'customer'), ['Payments'])
    })

    it('reads quotes, exclusions and or', async () => {
      deepEqual(await titles(id, '"business days"'), ['Payments'])
      deepEqual(await titles(id, '"days business"'), [])
      deepEqual(await titles(id, 'refund -money -fee'), ['Payments'])
      deepEqual((await titles(id, 'parcel or email')).sort(), ['Payments', 'Shipping'])
    })

    it('answers a question by passages with some of its words, after those with all', async () => {
      const passages = await found(id, 'How many business days does it take to get a refund of my purchase?')
      deepEqual(passages[0]!.title, 'Payments')
      ok(passages.every(({ match, score }) => match === 'any' && score < 0.5))
      deepEqual(await titles(id, 'refund purchase', { match: 'all' }), [])
      const mixed = await found(id, 'refund days')
      deepEqual(
        mixed
          .map(({ title, match }) => [title, match])
          .slice(0, 2)
          .sort(),
        [
          ['Payments', 'all'],
          ['Shipping', 'all'],
        ],
      )
      deepEqual(
        mixed.slice(2).map(({ title, match }) => [title, match]),
        [['Refunds', 'any']],
      )
      const scores = mixed.map(({ score }) => score)
      deepEqual(
        scores,
        scores.toSorted((a, b) => b - a),
      )
      deepEqual(await titles(id, 'refund purchase -money "five business"'), ['Payments'])
    })

    it('finds what a whole letter is about', async () => {
      const letter = `Dear friends, ${'we are so very glad to be here and '.repeat(20)} but is our parcel on its way?`
      deepEqual(await titles(id, letter), ['Shipping'])
      const { status } = await search({ q: 'x'.repeat(KNOWLEDGE.query + 1) })
      equal(status, 422)
    })

    it('highlights words in safe HTML', async () => {
      const [code] = await found(id, 'fox')
      equal(code!.text, 'if (a < b && c > d) { <script>alert("fox")</script> }')
      equal(
        code!.highlight,
        'if (a &lt; b &amp;&amp; c &gt; d) { &lt;script&gt;alert(&quot;<mark>fox</mark>&quot;)&lt;/script&gt; }',
      )
      const [page] = await found(id, 'lemurs')
      equal(page!.text, 'Team\n\nOur lemurs & bears')
      match(page!.highlight, /Our <mark>lemurs<\/mark> &amp; bears/)
      for (const hidden of ['badger', 'otter']) deepEqual(await titles(id, hidden), [])
      // The marks of the service in a text of a tenant.
      await made('POST', `${COLLECTIONS}/${id}/documents`, { title: 'Marks', body: '\uE000<b>\uE001 quokka' })
      equal((await found(id, 'quokka'))[0]!.highlight, '&lt;b&gt; <mark>quokka</mark>')
    })

    it('is restricted by tags and collection, and ranks collections of several languages together', async () => {
      deepEqual(await titles(id, 'refund', { tags: 'billing' }), ['Refunds', 'Payments'])
      deepEqual(await titles(id, 'refund', { tags: 'billing,customers' }), ['Payments'])
      const german = await collection([{ title: 'Rechnungen', body: 'Wir schicken Invoices per Post.' }], {
        language: 'german',
      })
      const { body } = await search({ q: 'invoices' })
      deepEqual(body.data.map(({ title }: { title: string }) => title).sort(), ['Payments', 'Rechnungen'])
      deepEqual(await titles(german, 'invoices'), ['Rechnungen'])
      equal((await search({ q: 'x', collection_id: '019a0000-0000-7000-8000-000000000001' })).status, 404)
    })

    it('is paged, over the passages with some of the words too', async () => {
      const many = await collection(
        Array.from({ length: 7 }, (_, i) => ({ title: `N${i}`, body: i < 3 ? 'ant bee' : 'ant' })),
      )
      const all = await titles(many, 'ant bee')
      equal(all.length, 7)
      const walked: string[] = []
      let cursor = ''
      do {
        const { body } = await search({
          q: 'ant bee',
          collection_id: many,
          limit: '2',
          ...(cursor && { cursor }),
        })
        walked.push(...body.data.map(({ title }: { title: string }) => title))
        cursor = body.next_cursor ?? ''
      } while (cursor)
      deepEqual(walked, all)
      const { body } = await search({ q: 'ant bee', collection_id: many, limit: '2', offset: '4' })
      deepEqual(
        body.data.map(({ title }: { title: string }) => title),
        all.slice(4, 6),
      )
      const { next_cursor } = (await search({ q: 'ant', collection_id: many, limit: '2' })).body
      equal((await search({ q: 'bee', collection_id: many, cursor: next_cursor })).status, 400)
    })

    it('refuses a query without a word', async () => {
      for (const q of ['-refund', '""', '?!', '-"a b"']) {
        const problems = invalid(await search({ q }))
        equal(problems.q, 'has no word to search for')
      }
      deepEqual(Object.keys(invalid(await send('GET', '/v1/knowledge/search?limit=0&x=1'))).sort(), [
        'limit',
        'q',
        'x',
      ])
      // Words that are too common to search for find nothing.
      deepEqual(await titles(id, 'the of'), [])
    })

    it('finds nothing of another organization', async () => {
      const other = await createOrganization(suite.db)
      const { key } = await createKey(suite.db, other)
      const asOther = { key }
      equal((await send('GET', '/v1/knowledge/search?q=refund', undefined, asOther)).body.data.length, 0)
      equal((await send('GET', `${COLLECTIONS}/${id}`, undefined, asOther)).status, 404)
      const mine = await made('POST', COLLECTIONS, { name: 'Handbook' }, asOther)
      await made('POST', `${COLLECTIONS}/${mine.id}/documents`, { title: 'Refunds', body: 'ours' }, asOther)
      const { body } = await send('GET', '/v1/knowledge/search?q=refund', undefined, asOther)
      deepEqual(
        body.data.map(({ text }: { text: string }) => text),
        ['ours'],
      )
      const foreign = `/v1/knowledge/search?q=refund&collection_id=${id}`
      equal((await send('GET', foreign, undefined, asOther)).status, 404)
    })
  })
})
