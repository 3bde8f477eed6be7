import assert from 'node:assert/strict'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

const EVIL = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

const SPEC = `name: Console
inputs: {email: {type: string, required: true}}
nodes:
  fields:
    type: set_fields
    config: {fields: {email: "{{ inputs.email }}"}}
outputs: {email: "{{ nodes.fields.output.email }}"}
`
const WAITING = `name: Waiting
nodes:
  ask:
    type: approval
    config: {title: "Pay it?"}
    next: {approved: pause, rejected: end}
  pause:
    type: delay
    config: {for: 1h}
`

describe('workflows and runs in the console', () => {
  const suite = withApiAndWorker()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  const create = async (spec: string): Promise<string> => {
    const { status, body } = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
    assert.equal(status, 201, JSON.stringify(body))
    return body.workflow_id
  }
  const start = async (id: string): Promise<string> => {
    const { body } = await suite.api.request('POST', `/v1/workflows/${id}/run`, { body: { confirm: true } })
    return body.run_id
  }
  const untilShown = (path: string, pattern: RegExp): Promise<string> =>
    until(
      async () => {
        const { html } = await owner.get(path)
        return pattern.test(html) && html
      },
      async () => `${pattern} at ${path}: ${textOf((await owner.get(path)).html)}`,
    )

  it('are written with the findings at their lines, saved, activated, changed, run and retried', async () => {
    const wrong = SPEC.replace('type: set_fields', 'type: set_feilds')
    const checked = await owner.submit('/workflows/new', '/workflows', { spec: wrong, do: 'check' })
    assert.equal(checked.status, 200)
    assert.match(checked.html, /<li class="finding" id="line-5">[^<]*type: set_feilds<span class="message">/)
    assert.match(checked.html, /did you mean set_fields\?/)
    const refused = await owner.submit('/workflows/new', '/workflows', { spec: wrong, do: 'save' })
    assert.equal(refused.status, 400)
    assert.match(refused.html, /href="#line-5"/)
    assert.match(refused.html, /type: set_feilds\n/)

    const saved = await owner.submit('/workflows/new', '/workflows', { spec: SPEC, do: 'save' })
    const path = saved.location!.split('?')[0]!
    assert.match(path, /^\/workflows\/[0-9a-f-]{36}$/)
    assert.equal((await owner.submit(path, `${path}/activate`, {})).location, `${path}?done=activated`)
    const changed = await owner.submit(path, path, { spec: `# Changed\n${SPEC}`, do: 'save' })
    assert.equal(changed.location, `${path}?done=saved`)
    assert.match((await owner.get(path)).html, /Publish version 2/)
    const stale = await owner.submit(path, path, { spec: SPEC, version: '1', do: 'save' })
    assert.equal(stale.status, 412)
    assert.match(stale.html, /Somebody else saved a newer version/)
    const tab = { ...formOf((await owner.get(path)).html, path), version: '1' }
    const seen = await owner.post(path, { ...tab, spec: SPEC, do: 'check' })
    assert.equal(seen.status, 200)
    assert.equal((await owner.post(path, { ...formOf(seen.html, path), do: 'save' })).status, 412)
    assert.match((await owner.get(`${path}/versions/2`)).html, /class="added">\+# Changed/)
    assert.equal((await owner.submit(`${path}/versions/1`, `${path}/versions/1/restore`, {})).status, 303)
    assert.match((await owner.get(`${path}/versions`)).html, /restores 1/)

    const missing = await member.submit(`${path}/run`, `${path}/run`, { do: 'preview' })
    assert.equal(missing.status, 422)
    assert.match(missing.html, /href="#f-inputs\.email"/)
    const preview = await member.submit(`${path}/run`, `${path}/run`, { 'inputs.email': EVIL, do: 'preview' })
    assert.match(preview.html, /Nothing has happened yet/)
    const [, key] = /name="idempotency_key" value="([^"]+)"\/><input type="hidden" name="inputs.email"/.exec(
      preview.html,
    )!
    const [, csrf_token] = /name="csrf_token" value="([^"]+)"/.exec(preview.html)!
    const sent = { csrf_token: csrf_token!, idempotency_key: key!, 'inputs.email': EVIL, do: 'run' }
    const [run, same] = [await member.post(`${path}/run`, sent), await member.post(`${path}/run`, sent)]
    assert.equal(run.location, same.location)
    const runPath = run.location!.split('?')[0]!
    const html = await untilShown(runPath, /completed/)
    assert.match(html, /&lt;script>alert\(1\)/)
    assert.doesNotMatch(html, /<script>alert|<img/)
    const retried = await owner.submit(runPath, `${runPath}/retry`, {})
    assert.match(retried.location!, /^\/runs\/[0-9a-f-]{36}\?done=started$/)
    assert.match(await untilShown(retried.location!, /completed/), /Retry of/)
    assert.match((await owner.get('/runs?status=completed&q=Console')).html, /2 in all/)
  })

  it('wait for an approval, which the page gives, and are paused, resumed and cancelled', async () => {
    const id = await start(await create(WAITING))
    const path = `/runs/${id}`
    await untilShown(path, /Pay it\?/)
    const decided = await owner.submit(path, `${path}/decide`, { decision: 'approved', comment: 'Fine' })
    assert.equal(decided.location, `${path}?done=changed`, textOf(decided.html))
    await untilShown(path, /waits until/)
    assert.equal((await owner.submit(path, `${path}/pause`, {})).location, `${path}?done=changed`)
    await untilShown(path, new RegExp(`action="${path}/resume"`))
    assert.equal((await owner.submit(path, `${path}/resume`, {})).status, 303)
    await untilShown(path, new RegExp(`action="${path}/pause"`))
    assert.equal((await owner.submit(path, `${path}/cancel`, {})).status, 303)
    await untilShown(path, /cancelled/)
    assert.match((await owner.get('/runs?status=cancelled')).html, /Waiting/)
  })

  it('show the items of loops', async () => {
    const id = await start(
      await create(`name: Loop
nodes:
  each:
    type: for_each
    config: {items: ["a", "<script>alert(1)</script>"]}
    next: {item: one, done: end}
  one:
    type: set_fields
    config: {fields: {x: "{{ item }}"}}
`),
    )
    await untilShown(`/runs/${id}`, /completed/)
    const { html } = await owner.get(`/runs/${id}/items?loop=each`)
    assert.match(html, /each:1/)
    assert.doesNotMatch(html, /<script>alert/)
    const item = await owner.get(`/runs/${id}?path=each:0`)
    assert.match(item.html, /Nodes of each:0/)
  })

  it('are imported from templates by an owner; a member may run but not change them', async () => {
    const imported = await owner.submit('/workflows/templates?search=newsletter', '/workflows/import', {})
    const path = imported.location!.split('?')[0]!
    assert.equal(imported.status, 303)
    const activated = await owner.submit(path, `${path}/activate`, {})
    assert.equal(activated.status, 409)
    assert.match(activated.html, /newsletter_key/)
    const { html } = await member.get(path)
    assert.doesNotMatch(html, /<textarea|\/activate"|\/delete"/)
    assert.match(html, /class="lines"/)
    const refused = await member.post(path, {
      csrf_token: member.headers['X-CSRF-Token']!,
      spec: SPEC,
      do: 'save',
    })
    assert.equal(refused.status, 403)
    assert.equal((await owner.submit(path, `${path}/delete`, {})).location, '/workflows?done=removed')
  })

  it('say what is wrong with a filter', async () => {
    const { status, html } = await owner.get('/runs?q=ab')
    assert.equal(status, 422)
    assert.match(html, /must have at least 3 characters/)
  })
})
