import assert from 'node:assert/strict'
import { formOf, textOf, type Visitor, visit, visitWith } from '../../support/console.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

const EVIL = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

const SPEC = `name: Editor
# A comment stays.
inputs: {email: {type: string, required: true}}
nodes:
  first:
    type: set_fields
    config: {fields: {email: "{{ inputs.email }}"}}
  last:
    type: set_fields
    config: {fields: {done: true}}
outputs: {email: "{{ nodes.first.output.email }}"}
`

describe('the editor of workflows in the console', () => {
  const suite = withApiAndWorker()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  const create = async (spec = SPEC): Promise<string> => {
    const { status, body } = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
    assert.equal(status, 201, JSON.stringify(body))
    return `/workflows/${body.workflow_id}`
  }
  const specIn = (html: string, action: string) => formOf(html, action).spec
  const stored = async (path: string) => (await suite.api.request('GET', `/v1${path}`)).body

  it('applies the fix of a finding by its button, and keeps comments', async () => {
    const wrong = SPEC.replace('type: set_fields', 'type: set_feilds')
    const checked = await owner.submit('/workflows/new', '/workflows', { spec: wrong, do: 'check' })
    const [, fix] = /name="do" value="(fix [^"]*)"[^>]*>Apply</.exec(checked.html)!
    const fixed = await owner.post('/workflows', { ...formOf(checked.html, '/workflows'), do: fix! })
    assert.equal(fixed.status, 200)
    assert.equal(specIn(fixed.html, '/workflows'), SPEC)
    assert.doesNotMatch(fixed.html, /set_feilds/)
    const gone = await owner.post('/workflows', { ...formOf(fixed.html, '/workflows'), do: fix! })
    assert.match(gone.html, /change the line by hand/)
    assert.equal(specIn(gone.html, '/workflows'), SPEC)
  })

  it('inserts a node, and names the one that was meant', async () => {
    const typed = { spec: SPEC, node_type: 'delay', do: 'insert' }
    const { html } = await owner.submit('/workflows/new', '/workflows', typed)
    assert.match(String(specIn(html, '/workflows')), /\n {2}delay:\n {4}type: delay\n[\s\S]*\noutputs:/)
    const unknown = await owner.submit('/workflows/new', '/workflows', { ...typed, node_type: 'delya' })
    assert.match(unknown.html, /did you mean delay\?/)
    assert.equal(specIn(unknown.html, '/workflows'), SPEC)
  })

  it('merges what two tabs change in different lines, and saves nothing before it is seen', async () => {
    const path = await create()
    const tabs = await Promise.all([owner.get(path), owner.get(path)])
    const [first, second] = tabs.map(({ html }) => formOf(html, path))
    const theirs = SPEC.replace('name: Editor', 'name: Theirs')
    const mine = SPEC.replace('done: true', 'done: false')
    assert.equal((await owner.post(path, { ...first!, spec: theirs, do: 'save' })).status, 303)
    const conflict = await owner.post(path, { ...second!, spec: mine, do: 'save' })
    assert.equal(conflict.status, 412)
    assert.match(conflict.html, /class="added">\+name: Theirs/)
    const merged = formOf(conflict.html, path)
    assert.equal(merged.spec, mine.replace('name: Editor', 'name: Theirs'))
    assert.equal((await stored(path)).version, 2)
    assert.equal((await owner.post(path, { ...merged, do: 'save' })).status, 303)
    assert.equal((await stored(path)).spec, merged.spec)
  })

  it('keeps the text of an author where both changed a line, beside what the other changed', async () => {
    const path = await create()
    const tab = formOf((await owner.get(path)).html, path)
    const change = (to: string) => SPEC.replace('done: true', `done: ${to}`)
    assert.equal((await owner.submit(path, path, { spec: change('"theirs"'), do: 'save' })).status, 303)
    const conflict = await owner.post(path, { ...tab, spec: change('"mine"'), do: 'save' })
    assert.equal(conflict.status, 412)
    assert.match(conflict.html, /both changed the same lines/)
    assert.equal(specIn(conflict.html, path), change('"mine"'))
    assert.match(conflict.html, /class="added">\+ .*theirs/)
    assert.equal((await owner.post(path, { ...formOf(conflict.html, path), do: 'save' })).status, 303)
    assert.equal((await stored(path)).spec, change('"mine"'))
  })

  it('keeps what was typed into a workflow that somebody deleted meanwhile', async () => {
    const path = await create()
    const tab = formOf((await owner.get(path)).html, path)
    await suite.api.request('DELETE', `/v1${path}`)
    const { status, html } = await owner.post(path, { ...tab, spec: `# Typed\n${SPEC}`, do: 'save' })
    assert.equal(status, 404)
    assert.equal(specIn(html, '/workflows'), `# Typed\n${SPEC}`)
  })

  it('keeps what was typed through the end of the session', async () => {
    const path = await create()
    const tab = formOf((await owner.get(path)).html, path)
    const typed = { ...tab, spec: `# Typed\n${SPEC}`, do: 'publish' }
    const { status, html } = await visitWith(suite.api).post(path, typed)
    assert.equal(status, 401)
    const form = formOf(html, '/sign-in')
    const kept = new Map(JSON.parse(String(form.kept)))
    assert.deepEqual(
      [form.next, kept.get('spec'), kept.get('do'), kept.get('version')],
      [path, typed.spec, 'publish', '1'],
    )
  })

  it('saves and publishes at once', async () => {
    const path = await create()
    const form = { ...formOf((await owner.get(path)).html, path), spec: `# 2\n${SPEC}`, do: 'publish' }
    const [once, twice] = [await owner.post(path, form), await owner.post(path, form)]
    assert.equal(once.location, `${path}?done=activated`, textOf(once.html))
    assert.equal(twice.location, once.location)
    const { version, active_version } = await stored(path)
    assert.deepEqual([version, active_version], [2, 2])
  })

  it('draws the graph, with titles as text', async () => {
    const path = await create(
      `name: Graph
nodes:
  ask: {type: approval, title: ${JSON.stringify(EVIL)}, config: {title: Sure}, next: {approved: yes, rejected: end}}
  yes: {type: set_fields, config: {fields: {x: 1}}}
`,
    )
    const { html } = await owner.get(path)
    assert.match(html, /<g class="node"[^>]*data-node="ask"/)
    assert.match(html, /<g class="line"><path d="M/)
    assert.match(html, /&lt;script>alert\(1\)/)
    assert.doesNotMatch(html, /<script>alert|<img/)
    assert.ok(html.length < 60_000, `${html.length} bytes`)
  })

  it('does not draw a graph of too many nodes', async () => {
    const nodes = Array.from(
      { length: 150 },
      (_, i) => `  n${i}: {type: set_fields, config: {fields: {x: 1}}}`,
    )
    const path = await create(`name: Long\nnodes:\n${nodes.join('\n')}\n`)
    const { html } = await owner.get(path)
    assert.match(html, /It has 150 nodes/)
  })

  it('shows the catalogue of nodes with their snippets, found by the words of other products', async () => {
    const { html } = await member.get('/workflows/nodes?search=send+mail')
    const [, type] = /href="\/workflows\/nodes\/(\w+)"/.exec(html)!
    const page = await member.get(`/workflows/nodes/${type}`)
    assert.match(page.html, new RegExp(`data-snippet="  ${type}:\\n    type: ${type}\\n`))
    assert.doesNotMatch(page.html, /workflows\/new/)
    const { body } = await suite.api.request('GET', '/v1/workflows/nodes')
    for (const { node_type } of body.data) {
      const one = await owner.get(`/workflows/nodes/${node_type}`)
      assert.equal(one.status, 200, node_type)
      assert.ok(one.html.length < 60_000, `${node_type}: ${one.html.length} bytes`)
    }
    const begun = await owner.get(`/workflows/new?node=${type}`)
    assert.match(
      String(specIn(begun.html, '/workflows')),
      new RegExp(`^name: New workflow\nnodes:\n  ${type}:`),
    )
    const nothing = await owner.get('/workflows/nodes?search=zzzz')
    assert.match(nothing.html, /No node matches/)
    assert.equal((await owner.get('/workflows/nodes/nothing')).status, 404)
    const all = await owner.get('/workflows/nodes')
    assert.ok(all.html.length < 60_000, `${all.html.length} bytes`)
  })

  it('shows templates with what they need, and imports one under another name', async () => {
    const gallery = await owner.get('/workflows/templates')
    assert.ok(gallery.html.length < 60_000, `${gallery.html.length} bytes`)
    assert.match(gallery.html, /sales \(\d+\)/)
    const path = '/workflows/templates/newsletter-sync'
    const { html } = await owner.get(path)
    assert.match(html, /newsletter_key/)
    const imported = await owner.submit(path, '/workflows/import', { name: EVIL })
    assert.equal(imported.status, 303, textOf(imported.html))
    assert.equal((await stored(imported.location!.split('?')[0]!)).name, EVIL)
    assert.doesNotMatch((await owner.get(imported.location!)).html, /<script>alert|<img/)
    assert.doesNotMatch((await member.get(path)).html, /action="\/workflows\/import"/)
    assert.equal((await owner.get('/workflows/templates/nothing')).status, 404)
  })

  it('tests a node with values and pinned samples', async () => {
    const path = await create()
    const inputs = JSON.stringify({ inputs: { email: EVIL } })
    const preview = await member.submit(`${path}/test`, `${path}/test`, {
      node: 'first',
      inputs,
      do: 'preview',
    })
    assert.match(preview.html, /nothing has happened yet/)
    const tested = await owner.submit(`${path}/test`, `${path}/test`, { node: 'first', inputs, do: 'test' })
    assert.match(tested.html, /completed/, textOf(tested.html))
    assert.match(tested.html, /&lt;script>alert\(1\)/)
    assert.doesNotMatch(tested.html, /<script>alert|<img/)
    const kept = await owner.post(`${path}/samples`, formOf(tested.html, `${path}/samples`))
    assert.equal(kept.location, `${path}/test?node=first&done=saved`)
    const { body } = await suite.api.request('GET', `/v1${path}/samples`)
    assert.deepEqual(body.data[0].output, { email: EVIL })
    const shown = await owner.get(`${path}/test`)
    const forgotten = await owner.post(`${path}/samples`, {
      ...formOf(shown.html, `${path}/samples`),
      do: 'forget',
    })
    assert.equal(forgotten.status, 303)
    const wrong = await owner.submit(`${path}/test`, `${path}/test`, {
      node: 'first',
      inputs: '{',
      do: 'test',
    })
    assert.equal(wrong.status, 422)
    assert.match(wrong.html, /not a JSON object/)
    assert.equal(formOf(wrong.html, `${path}/test`).inputs, '{')
    const form = formOf(shown.html, `${path}/test`)
    const unknown = await owner.post(`${path}/test`, { ...form, node: 'frist', do: 'test' })
    assert.equal(unknown.status, 404)
    assert.match(unknown.html, /did you mean first\?/)
  })
})
