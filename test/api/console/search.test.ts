import assert from 'node:assert/strict'
import { textOf, type Visitor, visit } from '../../support/console.ts'
import { withApi } from '../../support/with-api.ts'

const EVIL = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

describe('the search of the console', () => {
  const suite = withApi()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  const request = async (path: string, body: object) => (await suite.api.request('POST', path, { body })).body

  it('finds records, workflows and runs, by their texts and their ids', async () => {
    const company = await request('/v1/objects/companies', { name: `Zebra ${EVIL}` })
    const { workflow_id } = await request('/v1/workflows', {
      spec: 'name: Zebra crossing\nnodes:\n  a: {type: set_fields, config: {fields: {x: 1}}}\n',
    })
    const { run_id } = await request(`/v1/workflows/${workflow_id}/run`, { confirm: true })
    const { html } = await owner.get('/search?q=zebra')
    assert.match(html, new RegExp(`href="/records/companies/${company.id}"`))
    assert.match(html, new RegExp(`href="/workflows/${workflow_id}"`))
    assert.doesNotMatch(html, /<script>alert|<img/)
    for (const [id, href] of [
      [company.id, `/records/companies/${company.id}`],
      [workflow_id, `/workflows/${workflow_id}`],
      [run_id, `/runs/${run_id}`],
    ])
      assert.match((await owner.get(`/search?q=${id}`)).html, new RegExp(`href="${href}"`))
  })

  it('finds the pages and actions of a role', async () => {
    const actions = async (visitor: Visitor, q: string) =>
      [
        ...(await visitor.get(`/search?q=${q}`)).html
          .split('class="results"')[1]!
          .matchAll(/<a href="([^"]+)"/g),
      ].map(([, href]) => href)
    assert.deepEqual(await actions(owner, 'api+key'), ['/settings/keys', '/settings/keys/new'])
    assert.deepEqual(await actions(member, 'api+key'), [])
    assert.ok((await actions(owner, 'new')).includes('/records/contacts/new'))
    assert.ok((await actions(owner, 'new')).includes('/workflows/new'))
    assert.ok(!(await actions(member, 'new')).includes('/workflows/new'))
  })

  it('says that nothing was found, and reads any text', async () => {
    assert.match((await owner.get('/search?q=zzqqzz')).html, /Nothing found/)
    for (const q of [EVIL, '%', 'a'.repeat(5_000), '\u202e', '"', '\\'])
      assert.equal((await owner.get(`/search?${new URLSearchParams({ q })}`)).status, 200, textOf(q))
  })
})
