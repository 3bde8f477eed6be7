import assert from 'node:assert/strict'
import {
  activate,
  createWorkflow,
  deactivate,
  deleteWorkflow,
  getWorkflow,
  updateWorkflow,
} from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { testActor } from '../../support/database.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

const greet: Definition = {
  name: 'Greet',
  trigger: { type: 'webhook' },
  inputs: { email: { type: 'string', required: true } },
  nodes: [{ id: 'hello', type: 'set_fields', config: { fields: { text: 'Hello {{ inputs.email }}' } } }],
  edges: [],
  outputs: {},
  settings: {},
}

describe('the workflow of an incoming webhook', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const saved = (active: boolean) =>
    test.db.tenant(test.api.organizationId, testActor, async (tx) => {
      const content = { spec: null, definition: greet, program: compile(greet) }
      const { id } = await createWorkflow(tx, { name: greet.name, description: null, ...content })
      if (active) await activate(tx, id)
      return id
    })
  const runsOf = (workflow_id: string) => test.db.system('runs').where({ workflow_id })
  const bound = (workflow_id: string, values: object = {}) =>
    test.createWebhook({ workflow_id, workflow_inputs: { email: 'payload.person.email' }, ...values })

  it('is queued with the record, the payload and the webhook, and the log has the run id', async () => {
    const workflowId = await saved(true)
    const webhook = await bound(workflowId)
    const payload = { person: { email: 'ada@example.com' } }
    const { body } = await test.send(webhook, payload)
    const [run, ...more] = await runsOf(workflowId)
    assert.equal(more.length, 0)
    assert.deepEqual(
      [run.status, run.workflow_version, run.record_id, run.inputs],
      ['queued', 1, body.record_id, { email: 'ada@example.com' }],
    )
    assert.equal(run.trigger.type, 'webhook')
    assert.deepEqual(run.trigger.payload, payload)
    assert.deepEqual(run.trigger.webhook, { id: webhook.id, name: 'Form' })
    assert.equal(run.trigger.record.email, 'ada@example.com')
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.run_id, entry.warnings], [run.id, []])
  })

  it('gets the text of XML elements with attributes', async () => {
    const workflowId = await saved(true)
    const webhook = await bound(workflowId)
    const xml = '<lead><person><email type="work">xml@example.com</email></person></lead>'
    await test.send(webhook, xml, { 'Content-Type': 'application/xml' })
    const [run] = await runsOf(workflowId)
    assert.deepEqual(run.inputs, { email: 'xml@example.com' })
    assert.deepEqual(run.trigger.payload, { person: { email: { type: 'work', '#text': 'xml@example.com' } } })
  })

  it('is not queued if the record is not written', async () => {
    const workflowId = await saved(true)
    const webhook = await bound(workflowId)
    await test.db.system.transaction(async (trx) => {
      await trx.raw('reset role')
      await trx.raw(
        "alter table incoming_logs add constraint no_success check (status <> 'Success') not valid",
      )
    })
    const { status } = await test.send(webhook, { person: { email: 'half@example.com' } })
    await test.db.system.transaction(async (trx) => {
      await trx.raw('reset role')
      await trx.raw('alter table incoming_logs drop constraint no_success')
    })
    assert.equal(status, 500)
    assert.equal((await runsOf(workflowId)).length, 0)
    assert.equal((await test.db.system('contacts').where({ email: 'half@example.com' })).length, 0)
  })

  it('is not started by a skip', async () => {
    const workflowId = await saved(true)
    const webhook = await bound(workflowId, { deduplication: { action: 'Skip' } })
    const payload = { person: { email: 'skip@example.com' } }
    await test.send(webhook, payload)
    assert.equal((await test.send(webhook, payload)).body.action, 'skipped')
    assert.equal((await runsOf(workflowId)).length, 1)
  })

  it('is started once by a repeated delivery', async () => {
    const workflowId = await saved(true)
    const webhook = await bound(workflowId)
    const payload = { person: { email: 'again@example.com' } }
    for (let n = 0; n < 2; n++) await test.send(webhook, payload, { 'webhook-id': 'msg_again' })
    assert.equal((await runsOf(workflowId)).length, 1)
  })

  it('causes only a log warning if it is a draft, inactive, deleted or lacks an input', async () => {
    const draft = await saved(false)
    const inactive = await saved(true)
    const deleted = await saved(true)
    const lacking = await saved(true)
    const ids = [draft, inactive, deleted, lacking]
    const webhooks = await Promise.all(
      ids.map((id) => bound(id, id === lacking ? { workflow_inputs: { email: 'payload.nothing' } } : {})),
    )
    await test.db.tenant(test.api.organizationId, testActor, async (tx) => {
      await deactivate(tx, inactive)
      await deleteWorkflow(tx, deleted)
    })
    const warnings: string[] = []
    for (const webhook of webhooks) {
      const { status } = await test.send(webhook, { person: { email: 'warn@example.com' } })
      assert.equal(status, 200)
      const [entry] = await test.logs(webhook)
      assert.deepEqual([entry.status, entry.run_id, entry.warnings.length], ['Success', null, 1])
      warnings.push(entry.warnings[0])
    }
    assert.deepEqual(
      warnings.map((warning) => /is not active|does not exist|email/.exec(warning)?.[0]),
      ['is not active', 'is not active', 'does not exist', 'email'],
    )
    for (const id of ids) assert.equal((await runsOf(id)).length, 0)
  })

  it('must exist when it is selected', async () => {
    const workflow_id = crypto.randomUUID()
    const refused = await test.app('POST', '/webhooks/incoming', { name: 'x', workflow_id }, 422)
    assert.deepEqual(refused.body.detail, [
      {
        loc: ['body', 'workflow_id'],
        msg: 'there is no workflow with this id',
        type: 'not_found',
        input: workflow_id,
      },
    ])
    const webhook = await test.createWebhook()
    await test.app('PATCH', `/webhooks/incoming/${webhook.id}`, { workflow_id }, 422)
  })

  it('must be able to start with the saved inputs, in the version that a trigger runs', async () => {
    const workflow_id = await saved(true)
    const issues = async (method: string, path: string, body: object) => {
      const answer = await test.app(method, `/webhooks/incoming${path}`, body, 422)
      return answer.body.detail.map(({ loc, type, hint }: { loc: string[]; type: string; hint: string }) => [
        loc.slice(1).join('.'),
        type,
        hint,
      ])
    }
    const missing = ['workflow_inputs.email', 'missing', 'set a path, such as payload.email or record.id']
    const name = 'Form'
    assert.deepEqual(await issues('POST', '', { name, workflow_id }), [missing])
    assert.deepEqual(
      await issues('POST', '', {
        name,
        workflow_id,
        workflow_inputs: { emial: 'payload.e', zz: 'payload.x' },
      }),
      [
        ['workflow_inputs.emial', 'unknown_input', 'did you mean email?'],
        ['workflow_inputs.zz', 'unknown_input', 'its inputs are email'],
        missing,
      ],
    )
    const none = ['workflow_inputs', 'invalid_value', 'set workflow_id, or omit workflow_inputs']
    assert.deepEqual(await issues('POST', '', { name, workflow_inputs: { email: 'payload.e' } }), [none])

    const { id } = await bound(workflow_id)
    assert.deepEqual(await issues('PATCH', `/${id}`, { workflow_inputs: {} }), [missing])
    const inputs = { name: { type: 'string', default: 'Ada', required: true } } as const
    await test.db.tenant(test.api.organizationId, testActor, async (tx) => {
      const definition = { ...greet, inputs }
      const content = { spec: null, definition, program: compile(definition) }
      await updateWorkflow(tx, await getWorkflow(tx, workflow_id), { content })
    })
    const change = async (body: object) => (await test.app('PATCH', `/webhooks/incoming/${id}`, body)).body
    await change({ workflow_id })
    await test.db.tenant(test.api.organizationId, testActor, (tx) => activate(tx, workflow_id))
    assert.equal((await change({ name: 'New' })).workflow_inputs.email, 'payload.person.email')
    assert.deepEqual(await issues('PATCH', `/${id}`, { workflow_id }), [
      ['workflow_inputs.email', 'unknown_input', 'its inputs are name'],
    ])
    await change({ workflow_inputs: {} })
    assert.deepEqual((await change({ workflow_inputs: { name: 'record.id' } })).workflow_inputs, {
      name: 'record.id',
    })
    assert.deepEqual((await change({ workflow_id: null })).workflow_inputs, {})
  })
})
