import assert from 'node:assert/strict'
import { type HttpSource, readSource, type Source } from '../../../../db/model/incoming/source.ts'

type Read = Source & HttpSource
const common = { url: 'https://a.example/', interval_minutes: 15, existing: false, header_names: [] }
const feed: Read = { type: 'rss', ...common }
const list = (more: object = {}): Read =>
  ({ type: 'http_list', ...common, items: null, identity: ['id'], cursor: null, ...more }) as Read

const read = (source: Read, body: unknown) =>
  readSource(source, typeof body === 'string' ? body : JSON.stringify(body))
const payloads = (source: Read, body: unknown) => read(source, body).items.map(({ payload }) => payload)

const RSS = `<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
  xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>News</title>
  <item><title>Second &amp; last</title><link>https://a.example/2</link><guid isPermaLink="false">g2</guid>
    <pubDate>Tue, 02 Jun 2026 10:00:00 GMT</pubDate><dc:creator>Ada</dc:creator><category>x</category><category>y</category>
    <description><![CDATA[<p>Short</p>]]></description><content:encoded><![CDATA[<p>Long</p>]]></content:encoded></item>
  <item><title>First</title><link>https://a.example/1</link></item></channel></rss>`

const ATOM = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Notes</title>
  <entry><id>urn:1</id><title type="text">One</title><link rel="self" href="https://a.example/self"/>
    <link rel="alternate" href="https://a.example/one"/><updated>2026-06-01T10:00:00+02:00</updated>
    <author><name>Grace</name></author><category term="t"/><summary type="html">S</summary></entry></feed>`

describe('the items of a polled source', () => {
  it('of RSS are read oldest first, value by value', () => {
    const [first, second] = payloads(feed, RSS)
    assert.equal(first!.title, 'First')
    assert.deepEqual(second, {
      title: 'Second & last',
      link: 'https://a.example/2',
      id: 'g2',
      author: 'Ada',
      published_at: '2026-06-02T10:00:00.000Z',
      summary: '<p>Short</p>',
      content: '<p>Long</p>',
      categories: ['x', 'y'],
    })
  })

  it('of Atom, with one entry, too', () => {
    assert.deepEqual(payloads(feed, ATOM), [
      {
        title: 'One',
        link: 'https://a.example/one',
        id: 'urn:1',
        author: 'Grace',
        published_at: '2026-06-01T08:00:00.000Z',
        summary: 'S',
        content: null,
        categories: ['t'],
      },
    ])
  })

  it('of an empty feed are none; what is no feed is refused', () => {
    assert.deepEqual(payloads(feed, '<rss><channel><title>Empty</title></channel></rss>'), [])
    assert.deepEqual(payloads(feed, '<feed><title>Empty</title></feed>'), [])
    for (const body of ['<html><body>404</body></html>', 'no xml', '<!DOCTYPE a><rss/>'])
      assert.throws(() => read(feed, body), { type: 'invalid_request' }, body)
  })

  it('of a list are known by their identity, or as a whole', () => {
    const same = (one: object, other: object, source = list()) =>
      read(source, [one]).items[0]!.fingerprint.equals(read(source, [other]).items[0]!.fingerprint)
    assert.ok(same({ id: 1, a: 1 }, { id: 1, a: 2 }))
    assert.ok(!same({ id: 1 }, { id: '1' }))
    assert.ok(!same({ a: 1 }, { a: 2 }))
    assert.ok(!same({ id: 1, at: 1 }, { id: 1, at: 2 }, list({ identity: ['id', 'at'] })))
    assert.equal(read(list(), [{ id: 1 }, { id: 1 }]).items.length, 1)
  })

  it('of a list are at its path, or in its only list; the cursor is in the answer or the last item', () => {
    const body = { data: { users: [{ id: 1 }, { id: 2 }] }, meta: { next: 'abc' } }
    const at = (from: string, path: string) => ({
      cursor: { param: 'after', from, path },
      items: 'data.users',
    })
    assert.deepEqual(payloads(list({ items: 'data.users' }), body), [{ id: 1 }, { id: 2 }])
    assert.equal(read(list(at('response', 'meta.next')), body).cursor, 'abc')
    assert.equal(read(list(at('last_item', 'id')), body).cursor, '2')
    assert.equal(read(list(at('response', 'meta.none')), body).cursor, null)
    assert.deepEqual(payloads(list(), { total: 1, users: [{ id: 1 }] }), [{ id: 1 }])
    for (const wrong of [{ a: [], b: [] }, { a: 1 }, [1], '{'])
      assert.throws(() => read(list(), wrong), { type: 'invalid_request' }, JSON.stringify(wrong))
  })
})
