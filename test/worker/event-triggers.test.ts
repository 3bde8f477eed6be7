import assert from 'node:assert/strict'
import { insertEvents } from '../../db/events/outbox.ts'
import { createSchema, updateSchema } from '../../db/model/records/schemas.ts'
import { createRecord } from '../../db/records/create.ts'
import { updateRecord } from '../../db/records/update.ts'
import { activate, createWorkflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import type { Definition, Trigger } from '../../workflows/language/definition.ts'
import { CHAIN_DEPTH } from '../../workflows/shared/limits.ts'
import { createOrganization, testActor } from '../support/database.ts'
import { completeDefinition } from '../support/definition.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { untilRun } from '../support/worker.ts'

describe('runs that events start', () => {
  // Nothing but wake-ups starts a run here; `npm run bench -- triggers` measures their delay.
  const suite = withWorker({ pollMs: 3_600_000 })

  const listening = (name: string, trigger: Trigger, rest: Pick<Definition, 'nodes'> & Partial<Definition>) =>
    suite.db.tenant(suite.organizationId, testActor, async (tx) => {
      const definition = { name, trigger, inputs: {}, edges: [], outputs: {}, settings: {}, ...rest }
      const program = compile(definition)
      const { id } = await createWorkflow(tx, { name, description: null, spec: null, definition, program })
      await activate(tx, id)
      return id
    })
  const contact = (values: object) =>
    suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRecord(tx, 'contacts', createSchema('contacts').parse(values)),
    )
  /** Polls until the workflow has `count` runs that have ended. */
  function ended(workflowId: string, count = 1) {
    const all = () => suite.db.system('runs').where({ workflow_id: workflowId }).orderBy('id')
    return until(
      async () => {
        const runs = await all()
        return runs.length >= count && runs.every((run) => run.ended_at) && runs
      },
      async () => (await all()).map(({ status }) => status),
    )
  }

  it('read the record in their nodes, and start soon after the event', async () => {
    const id = await listening(
      'Greet',
      { type: 'event', events: ['contact.created'], when: '{{ trigger.record.email }}' },
      {
        nodes: [
          { id: 'set', type: 'set_fields', config: { fields: { mail: '{{ trigger.record.email }}' } } },
        ],
        outputs: { mail: '{{ nodes.set.output.mail }}', event: '{{ trigger.event.name }}' },
      },
    )
    await contact({ first_name: 'No mail' })
    const COUNT = 3
    for (let n = 0; n < COUNT; n++) {
      await contact({ email: `ada${n}@example.com` })
      await ended(id, n + 1)
    }
    const runs = await ended(id, COUNT)
    assert.deepEqual(
      runs.map((run) => run.outputs),
      Array.from({ length: COUNT }, (_, n) => ({ mail: `ada${n}@example.com`, event: 'contact.created' })),
    )
  })

  it('start where a field has changed, and read what changed', async () => {
    const id = await listening(
      'Became a customer',
      {
        type: 'event',
        events: ['contact.created', 'contact.updated'],
        when: "{{ trigger.changed contains 'lifecycle_stage' and trigger.record.lifecycle_stage == 'customer' }}",
      },
      {
        nodes: [
          { id: 'end', type: 'stop', config: { outputs: { was: '{{ trigger.previous.lifecycle_stage }}' } } },
        ],
      },
    )
    const ada = await contact({ first_name: 'Ada', lifecycle_stage: 'lead' })
    const update = (patch: object) =>
      suite.db.tenant(suite.organizationId, testActor, (tx) =>
        updateRecord(tx, 'contacts', ada.id as string, updateSchema('contacts').parse(patch)),
      )
    await contact({ first_name: 'Grace', lifecycle_stage: 'customer' })
    await update({ last_name: 'Lovelace' })
    await update({ lifecycle_stage: 'customer' })
    await update({ first_name: 'Augusta' })
    await update({ lifecycle_stage: 'other' })
    await update({ lifecycle_stage: 'customer' })
    assert.deepEqual(
      (await ended(id, 2)).map((run) => run.outputs),
      [{ was: 'lead' }, { was: 'other' }],
    )
    const trigger = await suite.db.system('workflow_triggers').where({ workflow_id: id }).first()
    assert.equal(trigger.problem, null)
  })

  it('stop with a failed run where workflows start each other in a loop', async () => {
    const loop = await listening(
      'Loop',
      { type: 'event', events: ['order.placed'] },
      { nodes: [{ id: 'again', type: 'emit_event', config: { event: 'order.placed', data: {} } }] },
    )
    const first = await listening(
      'First',
      { type: 'event', events: ['contact.created'], when: '{{ trigger.record.job_title | default: "" }}' },
      { nodes: [{ id: 'emit', type: 'emit_event', config: { event: 'order.placed', data: {} } }] },
    )
    await contact({ email: 'loop@example.com', job_title: 'Loop' })
    const [start] = await ended(first)
    const runs = await ended(loop, CHAIN_DEPTH + 1)
    await new Promise((resolve) => setTimeout(resolve, 500))
    assert.equal((await ended(loop)).length, CHAIN_DEPTH + 1)
    assert.deepEqual(
      runs.map((run) => [run.status, run.depth]),
      [...Array.from({ length: CHAIN_DEPTH }, (_, n) => ['completed', n + 1]), ['failed', CHAIN_DEPTH + 1]],
    )
    assert.deepEqual(
      runs.map((run) => run.cause),
      [start.id, ...runs.slice(0, -1).map((run) => run.id)],
    )
    assert.equal((await untilRun(suite.db, runs.at(-1).id)).error?.code, 'chain_too_long')
  })
})

describe('a storm of events', function () {
  /** Set `EVENTS=10000 npx mocha …` for a longer storm. */
  const EVENTS = Number(process.env.EVENTS ?? 200)
  /** Runs that relay and worker have in progress at once. */
  const MOST_BEFORE = 64
  this.timeout(60_000 + EVENTS * 200)
  const suite = withWorker()

  it('starts each run once, with its effect once, and delays another organization by few of them', async () => {
    const other = await createOrganization(suite.db)
    const count = { operation: 'increment', key: 'events' }
    const listens = (organizationId: string) =>
      suite.db.tenant(organizationId, testActor, async (tx) => {
        const definition = completeDefinition({
          trigger: { type: 'event', events: ['invoice.paid'] },
          nodes: [{ id: 'count', type: 'key_value', config: count }],
        })
        const program = compile(definition)
        const content = { name: 'Count', description: null, spec: null, definition, program }
        const { id } = await createWorkflow(tx, content)
        await activate(tx, id)
      })
    const raise = (organizationId: string, events: number) =>
      suite.db.tenant(organizationId, testActor, (tx) =>
        insertEvents(
          tx,
          Array.from({ length: events }, (_, n) => ({ name: 'invoice.paid', data: { n } })),
        ),
      )
    const runsOf = (organization_id: string) => suite.db.system('runs').where({ organization_id })
    for (const organizationId of [suite.organizationId, other]) await listens(organizationId)
    await raise(suite.organizationId, EVENTS)
    await until(
      async () => runsOf(suite.organizationId).where({ status: 'completed' }).first('id'),
      'the storm to start',
    )
    await raise(other, 1)
    const run = await until(
      async () =>
        runsOf(other)
          .whereNotNull('ended_at')
          .first<{ created_at: Date; ended_at: Date } | undefined>('created_at', 'ended_at'),
      'the run of the other organization',
    )
    const overtaking = await runsOf(suite.organizationId)
      .where('started_at', '>', run.created_at)
      .where('ended_at', '<', run.ended_at)
    assert.ok(overtaking.length <= MOST_BEFORE, `${overtaking.length} runs of the storm were before it`)

    let ended = 0
    while (ended < EVENTS) {
      const before = ended
      ended = await until(async () => {
        const runs = await runsOf(suite.organizationId).whereNotNull('ended_at').select('id')
        return runs.length > before && runs.length
      }, 'the next run')
    }
    const runs = await runsOf(suite.organizationId).orderBy('id')
    assert.equal(new Set(runs.map(({ trigger_key }) => trigger_key)).size, EVENTS)
    assert.deepEqual(new Set(runs.map(({ status }) => status)), new Set(['completed']))
    const [value] = await suite.db
      .system('key_values')
      .where({ organization_id: suite.organizationId })
      .pluck('value')
    assert.deepEqual([runs.length, value], [EVENTS, EVENTS])
  })
})
