import assert from 'node:assert/strict'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'

/** The longest bodies of activities, of characters of three bytes, in files and workflows. */
describe('long bodies of activities', function () {
  this.timeout(120_000)
  const on = withApiAndWorker()
  const body = `${'漢字,"\n'.repeat(20_000)}`

  it('are exported and imported as they are, and start workflows', async () => {
    const call = async (method: string, path: string, given?: object) => {
      const answer = await on.api.request(method, `/v1${path}`, given === undefined ? {} : { body: given })
      assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
      return answer.body
    }
    const ended = (path: string) =>
      until(async () => {
        const found = await call('GET', path)
        return found.ended_at ? found : undefined
      }, path)
    const { workflow_id } = await call('POST', '/workflows', {
      spec: `name: Mails
trigger: {type: event, events: [activity.created]}
nodes:
  read: {type: crm_manager, config: {operation: get, entity: activities, id: "{{ trigger.record.id }}"}}
outputs: {sent: "{{ trigger.record.body | size }}", read: "{{ nodes.read.output.body | size }}"}
`,
    })
    await call('POST', `/workflows/${workflow_id}/activate`, {})
    const made = await call('POST', '/objects/activities', { type: 'email', body: body.trim() })
    const run = await until(async () => {
      const [started] = (await call('GET', `/runs?workflow_id=${workflow_id}`)).data
      return started?.ended_at ? call('GET', `/runs/${started.run_id}`) : undefined
    }, 'the run')
    const size = body.trim().length
    assert.deepEqual([run.status, run.outputs], ['completed', { sent: size, read: size }])

    const { id } = await call('POST', '/exports', { entity: 'activities' })
    await ended(`/exports/${id}`)
    const file = (await on.api.request('GET', `/v1/exports/${id}/file`)).body
    const imports = importsOf(on.api)
    const done = await imports.run({ entity: 'activities', mode: 'upsert', by: 'id' }, file)
    assert.deepEqual([done.progress.skipped, done.progress.failed], [1, 0])
    assert.deepEqual(await call('GET', `/objects/activities/${made.id}`), made)
    await call('DELETE', `/objects/activities/${made.id}`)
    const again = await imports.run(
      { entity: 'activities', mapping: { id: null } },
      file,
    )
    assert.equal(again.progress.created, 1)
    assert.equal((await call('GET', '/objects/activities')).data[0].body, body.trim())
  })
})
