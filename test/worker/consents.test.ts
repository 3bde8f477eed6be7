import assert from 'node:assert/strict'
import { importsOf } from '../support/imports.ts'
import { recordCalls } from '../support/record-calls.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'

interface Listed {
  state: string
  stated_at: string
  channel: string
  expanded: { contact: { email: string } }
}

/** Consents in files and workflows. */
describe('consents', function () {
  this.timeout(120_000)
  const on = withApiAndWorker()
  const { call, ended, exported, ...calls } = recordCalls(on)
  const states = async () => {
    const { data } = await call('GET', '/objects/consents?sort=stated_at&order=asc&expand=contact')
    return data.map(
      ({ state, stated_at, channel, expanded }: Listed) =>
        `${expanded.contact.email} ${channel} ${state} ${stated_at.slice(0, 10)}`,
    )
  }
  const imported = (lines: string[] | string, settings: object = {}) =>
    calls.imported(
      { entity: 'consents', mode: 'upsert', by: 'contact_id', ...settings },
      typeof lines === 'string' ? lines : ['Email,List,Channel,Status,Opt-in date', ...lines].join('\n'),
    )
  const mapping = {
    Email: 'contact_email',
    List: 'purpose',
    Channel: 'channel',
    Status: 'state',
    'Opt-in date': 'stated_at',
  }

  it('are imported by the emails of their contacts, again without a change, and not undone by an old list', async () => {
    for (const name of ['ada', 'bob'])
      await call('POST', '/objects/contacts', { email: `${name}@example.com` })
    const list = [
      'ada@example.com,Newsletter,Email,Subscribed,2023-01-01',
      'bob@example.com,Newsletter,Email,Opted-out,2024-01-01',
      'eve@example.com,Newsletter,Email,Subscribed,2024-01-01',
      'ada@example.com,Newsletter,SMS,Perhaps,2024-01-01',
    ]
    const { done, errors } = await imported(list, { mapping })
    assert.deepEqual([done.progress.created, done.progress.failed], [2, 2], errors)
    assert.match(errors, /eve@example.com.*contact/)
    assert.match(errors, /Perhaps.*granted, withdrawn/)
    const before = ['ada@example.com email granted 2023-01-01', 'bob@example.com email withdrawn 2024-01-01']
    assert.deepEqual(await states(), before)
    const again = await imported(list.slice(0, 2), { mapping })
    assert.deepEqual([again.done.progress.skipped, again.done.progress.failed], [2, 0], again.errors)

    const next = await imported(
      [
        'bob@example.com,newsletter,Email,Subscribed,2022-05-05',
        'ada@example.com,newsletter,Email,Unsubscribed,2025-05-05',
      ],
      { mapping },
    )
    assert.deepEqual([next.done.progress.updated, next.done.progress.failed], [1, 1], next.errors)
    assert.match(next.errors, /bob@example.com.*is before 2024-01-01T00:00:00.000Z, when it was withdrawn/)
    assert.deepEqual(await states(), [before[1], 'ada@example.com email withdrawn 2025-05-05'])

    const undone = await call('POST', `/imports/${next.done.id}/undo`, { confirm: true })
    await ended(`/bulk-jobs/${undone.id}`)
    assert.deepEqual(await states(), before)

    const listed = await call('GET', '/objects/consents')
    const same = await imported(await exported('consents'), { by: 'id' })
    assert.equal(same.done.progress.failed, 0, same.errors)
    assert.deepEqual(await call('GET', '/objects/consents'), listed)
  })

  it('of a row with a wrong contact are refused with the column and the reason', async () => {
    const { id } = await call('POST', '/objects/contacts', { email: 'ida@example.com' })
    const lines = ['Contact,List,Status', 'abc,newsletter,Subscribed', `${id},newsletter,Subscribed`]
    const { done, errors } = await imported(lines.join('\n'), {
      mapping: { Contact: 'contact_id', List: 'purpose', Status: 'state' },
    })
    assert.deepEqual([done.progress.created, done.progress.failed], [1, 1], errors)
    assert.match(errors, /Contact.*UUID/)
    assert.doesNotMatch(errors, /went wrong/)
  })

  it('are made in a file of new ones with their contacts, and not without', async () => {
    for (const name of ['fay', 'guy'])
      await call('POST', '/objects/contacts', { email: `${name}@example.com` })
    const create = { mode: 'create', by: undefined }
    const columns = { List: 'purpose', Status: 'state' }
    const head = 'Email,List,Status'
    const rows = [
      'fay@example.com,offers,Subscribed',
      ',offers,Subscribed',
      'no@example.com,offers,Subscribed',
    ]
    const { done, errors } = await imported([head, ...rows].join('\n'), {
      ...create,
      mapping: { Email: 'contact_email', ...columns },
    })
    assert.deepEqual([done.progress.created, done.progress.failed], [1, 2], errors)
    assert.match(errors, /line 3: Email: is required\r/)
    assert.match(errors, /line 4: Email: there is no contact with the email no@example\.com[^;]*\r/)
    const imports = importsOf(on.api)
    const { body } = await imports.prepare(
      { entity: 'consents', ...create, mapping: { Email: null, ...columns } },
      [head, ...rows].join('\n'),
    )
    const refused = await imports.start(body.id, {})
    assert.equal(refused.status, 422)
    assert.match(refused.body.error.message, /no column is mapped to contact_id, which is required/)
  })

  it('start workflows when they are withdrawn, and are read by them', async () => {
    const { id: contact_id } = await call('POST', '/objects/contacts', { email: 'carl@example.com' })
    const { workflow_id } = await call('POST', '/workflows', {
      spec: `name: Ask
inputs: {contact: {type: string, required: true}}
nodes:
  may: {type: crm_manager, config: {operation: search, entity: consents, filters: {contact_id: "{{ inputs.contact }}", purpose: newsletter, channel: email, state: granted, contact.do_not_contact: false}}}
outputs: {may: "{{ nodes.may.output.data | size }}"}
`,
    })
    const may = async () => {
      const { run_id } = await call('POST', `/workflows/${workflow_id}/run`, {
        inputs: { contact: contact_id },
        confirm: true,
      })
      const run = await ended(`/runs/${run_id}`)
      assert.equal(run.status, 'completed', JSON.stringify(run.error))
      return run.outputs.may
    }
    assert.equal(await may(), 0)
    const fields = { contact_id, purpose: 'newsletter', channel: 'email' }
    const { id } = await call('POST', '/objects/consents', { ...fields, state: 'granted' })
    assert.equal(await may(), 1)

    const spec = `name: Nobody
nodes:
  make: {type: crm_manager, config: {operation: create, entity: consents, fields: {purpose: calls, state: granted}}}
`
    const without = await on.api.request('POST', '/v1/workflows', { body: { spec } })
    assert.equal(without.body.error?.message, 'the workflow has an error: contact_id is missing')

    const listening = await call('POST', '/workflows', {
      spec: `name: Withdrawn
trigger: {type: event, events: [consent.withdrawn]}
nodes:
  note: {type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.record.contact_id }}", fields: {tags: ["no {{ trigger.record.purpose }}"]}}}
`,
    })
    await call('POST', `/workflows/${listening.workflow_id}/activate`, {})
    await call('PATCH', `/objects/consents/${id}`, { state: 'withdrawn' })
    await until(async () => {
      const { tags } = await call('GET', `/objects/contacts/${contact_id}`)
      return tags[0] === 'no newsletter'
    }, 'the run of the event')
    assert.equal(await may(), 0)
  })
})
