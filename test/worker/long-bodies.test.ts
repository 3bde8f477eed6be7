import assert from 'node:assert/strict'
import { recordCalls } from '../support/record-calls.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'

/** The longest bodies of activities, with characters of three bytes, in files and workflows. */
describe('long bodies of activities', function () {
  this.timeout(120_000)
  const { call, imported, exported } = recordCalls(withApiAndWorker())
  const body = '漢字,"\n'.repeat(20_000).trim()

  it('start workflows, which read them', async () => {
    const { workflow_id } = await call('POST', '/workflows', {
      spec: `name: Mails
trigger: {type: event, events: [activity.created]}
nodes:
  read: {type: crm_manager, config: {operation: get, entity: activities, id: "{{ trigger.record.id }}"}}
outputs: {sent: "{{ trigger.record.body | size }}", read: "{{ nodes.read.output.body | size }}"}
`,
    })
    await call('POST', `/workflows/${workflow_id}/activate`, {})
    await call('POST', '/objects/activities', { type: 'email', body })
    const run = await until(async () => {
      const [started] = (await call('GET', `/runs?workflow_id=${workflow_id}`)).data
      return started?.ended_at ? call('GET', `/runs/${started.run_id}`) : undefined
    }, 'the run')
    assert.deepEqual(
      [run.status, run.outputs],
      ['completed', { sent: body.length, read: body.length }],
      JSON.stringify(run.error),
    )
  })

  it('are exported and imported as they are', async () => {
    const [made] = (await call('GET', '/objects/activities')).data
    const file = await exported('activities')
    const same = await imported({ entity: 'activities', mode: 'upsert', by: 'id' }, file)
    assert.deepEqual([same.done.progress.skipped, same.done.progress.failed], [1, 0], same.errors)
    assert.deepEqual(await call('GET', `/objects/activities/${made.id}`), made)
    await call('DELETE', `/objects/activities/${made.id}`)
    const again = await imported({ entity: 'activities', mapping: { id: null } }, file)
    assert.equal(again.done.progress.created, 1, again.errors)
    assert.equal((await call('GET', '/objects/activities')).data[0].body, body)
  })

  it('are not replaced by what a cell of a workbook has of them', async () => {
    // The cut is before a space, in a pair of surrogates, and in neither.
    for (const [text, cell] of [
      [`${'a'.repeat(32_766)} and the rest`, 'a'.repeat(32_766)],
      [`${'a'.repeat(32_766)}😀 and the rest`, 'a'.repeat(32_766)],
      ['a\r\n'.repeat(16_000).trim(), `${'a\n'.repeat(10_922)}a`],
    ] as const) {
      const made = await call('POST', '/objects/activities', { type: 'email', body: text })
      const file = (of: string) => `id,body\n${made.id},"${of}"\n`
      const by = { entity: 'activities', mode: 'upsert', by: 'id' }
      const same = await imported(by, file(cell))
      assert.deepEqual([same.done.progress.skipped, same.done.progress.failed], [1, 0], same.errors)
      assert.equal((await call('GET', `/objects/activities/${made.id}`)).body, text)
      const other = await imported(by, file(`b${cell.slice(1)}`))
      assert.equal(other.done.progress.updated, 1, other.errors)
    }
  })
})
