import { deepEqual, equal, match } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { catalogue } from '../../api/v1/catalogue.ts'
import { putSecret } from '../../db/access/secrets.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { createSchema } from '../../db/model/records/schemas.ts'
import { createRecord } from '../../db/records/create.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { asMarkdown, authoringGuide } from '../../workflows/authoring/guide/index.ts'
import { validateSpec } from '../../workflows/authoring/validate.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import { testActor } from '../support/database.ts'
import { withWorker } from '../support/with-worker.ts'
import { saveWorkflow, untilRun } from '../support/worker.ts'

/** Every whole spec of the guide, by the name of its workflow. */
const SPECS = new Map(
  [
    ...asMarkdown(authoringGuide(catalogue, { detail: 'full' })).matchAll(
      /^```yaml\n(name: (.+)\n[\s\S]*?)```$/gm,
    ),
  ].map(([, spec, name]) => [name!, spec!]),
)

describe('the examples of the authoring guide', () => {
  const secretsKey = randomBytes(32)
  const calls: { url: string; authorization: unknown; body: string }[] = []
  let refuses = false
  const suite = withWorker({
    secretsKey,
    http: async ({ url, headers, body }) => {
      calls.push({ url, authorization: headers?.Authorization, body: JSON.stringify(body) })
      return { status: refuses ? 400 : 200, headers: {}, body: {} } as never
    },
  })
  const ran = new Set<string>()

  interface Started {
    inputs?: Record<string, unknown>
    trigger?: object
    /** Replaces a text of the spec. */
    replacing?: [string, string]
  }

  const run = async (
    name: string,
    { inputs = {}, trigger = { type: 'api' }, replacing = ['', ''] }: Started = {},
  ) => {
    const definition = validateSpec(SPECS.get(name)!.replace(...replacing), catalogue).definition!
    ran.add(name)
    const given = checkInputs(definition.inputs, inputs).inputs
    const { id: workflowId } = await saveWorkflow(suite.db, suite.organizationId, definition)
    const id = await suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRun(tx, {
        workflow: { id: workflowId, version: 1, name },
        trigger: trigger as { type: 'api' },
        inputs: given,
        chain: CHAIN_START,
      }),
    )
    const ended = await untilRun(suite.db, id)
    equal(ended.status, 'completed', JSON.stringify(ended.error))
    return ended
  }
  const create = (kind: KindName, fields: object) =>
    suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRecord(tx, kind, createSchema(kind).parse(fields) as never),
    )
  const raised = async (name: string) =>
    (await suite.db.system('events').where({ name }).orderBy('id')).map(({ data }) => data)

  it('save a lead, and make a task for a large one only', async () => {
    const large = await run('Qualify a lead', { inputs: { email: 'ada@example.com', company_size: 250 } })
    const [contact] = await suite.db.system('contacts').where({ email: 'ada@example.com' })
    deepEqual(large.outputs, { contact_id: contact!.id })
    await run('Qualify a lead', { inputs: { email: 'alan@example.com' } })
    const tasks = await suite.db.system('tasks').select('title')
    deepEqual(tasks, [{ title: 'Call ada@example.com' }])
  })

  it('announce a won deal with a secret, and note on the deal that it failed', async () => {
    await suite.db.tenant(suite.organizationId, testActor, (tx) =>
      putSecret(tx, secretsKey, 'chat_token', 'a long enough value'),
    )
    const record = await create('deals', { name: 'Acme', amount: '5000.00', currency: 'EUR', stage: 'won' })
    const trigger = { type: 'event', record }
    await run('Announce a won deal', { trigger })
    const [call] = calls.splice(0)
    deepEqual(
      [call!.url, call!.authorization],
      ['https://chat.example.com/messages', 'Bearer a long enough value'],
    )
    match(call!.body, /Won: Acme \(5000.00 EUR\)/)
    equal((await suite.db.system('notes')).length, 0)
    refuses = true
    await run('Announce a won deal', { trigger })
    const [note] = await suite.db.system('notes')
    match(note!.body, /^Could not be announced: .*400/)
  })

  it('route a contact, wait, and join the branches', async () => {
    const follow = async (lifecycle_stage: string) => {
      const record = await create('contacts', { first_name: lifecycle_stage, lifecycle_stage })
      await run('Follow up', { trigger: { type: 'event', record }, replacing: ['{for: 2d}', '{for: 10ms}'] })
      const [row] = await suite.db.system('contacts').where({ id: record.id })
      return row!.last_contacted_at !== null
    }
    deepEqual([await follow('customer'), await follow('mql'), await follow('other')], [true, true, false])
    equal((await raised('customer.greeted')).length, 1)
  })

  it('search deals, and stay silent where there are none', async () => {
    await run('Open deals of the week')
    deepEqual(await raised('deals.reported'), [])
    for (const [name, amount] of [
      ['Small', '10'],
      ['Large', '2000'],
      ['Larger', '3000'],
    ])
      await create('deals', { name, amount, stage: 'proposal' })
    await run('Open deals of the week')
    deepEqual(await raised('deals.reported'), [{ count: 2, names: 'Larger, Large' }])
  })

  it('change each record of a search', async () => {
    for (const title of ['One', 'Two']) await create('tasks', { title, status: 'waiting' })
    await create('tasks', { title: 'Done', status: 'done' })
    await run('Remind of open tasks')
    deepEqual(await raised('tasks.bumped'), [{ titles: ['Two', 'One'] }])
    const tasks = await suite.db.system('tasks').where({ priority: 'high' }).orderBy('title')
    deepEqual(
      tasks.map(({ title }) => title),
      ['One', 'Two'],
    )
  })

  it('have defaults for their inputs', async () => {
    const { outputs } = await run('Inputs', { inputs: { email: 'ada@example.com' } })
    deepEqual(outputs, { text: 'ada@example.com: 10 ' })
  })

  it('were all run', () => {
    deepEqual([...ran].sort(), [...SPECS.keys()].sort())
    equal(ran.size, 6)
  })
})
