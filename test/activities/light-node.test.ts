import assert from 'node:assert/strict'
import { pino } from 'pino'
import type { EffectFactories } from '../../activities/effects/define.ts'
import { createEffects } from '../../activities/effects/index.ts'
import { REFUSED } from '../../activities/explain.ts'
import { needsSavepoints, runLightNode } from '../../activities/light-node.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'

const ID = '019a0000-0000-7000-8000-000000000001'

/** Nodes within one transaction, as in a segment. */
describe('a light node', () => {
  let db: TestDatabase
  let organization: string
  let lines: string[]
  const log = pino({}, { write: (line: string) => lines.push(line) })
  before(async () => {
    db = await createTestDatabase()
    organization = await createOrganization(db)
  })
  beforeEach(() => {
    lines = []
  })
  after(() => db?.drop())

  const real = createEffects({
    http: () => {
      throw new Error('not part of this test')
    },
  })
  const create = (name: string) => ({ operation: 'create', entity: 'companies', fields: { name } })
  const run = (
    tx: Tenant,
    type: string,
    config: Record<string, unknown>,
    effects: Partial<EffectFactories> = {},
    withSavepoint = true,
  ) => {
    const attempt = {
      node: { id: 'it', type, config, effect: 'write' as const },
      path: '',
      state: {
        run: { id: ID, workflow_id: ID, workflow_name: 'Test' } as never,
        organization: { id: organization, name: 'Test', currency: 'EUR', timezone: 'UTC' },
        env: {},
      },
      scope: {},
      now: new Date(),
      signal: new AbortController().signal,
    }
    return runLightNode({ effects: { ...real, ...effects }, log }, tx, attempt, withSavepoint)
  }
  const namesOf = async () => (await db.system('companies').orderBy('name')).map(({ name }) => name)

  it('without a savepoint demands one if it fails after it has written', async () => {
    const failing: Partial<EffectFactories> = {
      records: (host) => ({
        ...real.records(host),
        async create(entity, fields) {
          await real.records(host).create(entity, fields)
          throw new NodeError('late', 'Failed after the write.')
        },
      }),
    }
    const segment = db.tenant(organization, testActor, async (tx) => {
      await run(tx, 'crm_manager', create('Undone with it'), {}, false)
      await run(tx, 'crm_manager', create('Undone'), failing, false)
    })
    await assert.rejects(segment, (error) => needsSavepoints(error))
    assert.deepEqual(await namesOf(), [])
  })

  it('is rolled back alone if PostgreSQL refuses its data: the transaction continues', async () => {
    const outcomes = await db.tenant(organization, testActor, async (tx) => {
      const kept = await run(tx, 'crm_manager', create('Kept'))
      const refused = await run(tx, 'crm_manager', create('Undone'), {
        records: (host) => ({
          ...real.records(host),
          async create(entity, fields) {
            await real.records(host).create(entity, fields)
            return host.tx!.trx.raw("select 'x'::integer")
          },
        }),
      })
      const later = await run(tx, 'crm_manager', create('Later'))
      return [kept, refused, later].map(({ outcome }) => outcome)
    })
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['completed', 'failed', 'completed'],
    )
    assert.deepEqual(outcomes[1]?.status === 'failed' && outcomes[1].error, REFUSED.error)
    assert.deepEqual(await namesOf(), ['Kept', 'Later'])
  })

  it('that ignores a refused statement fails, and the transaction continues', async () => {
    const { outcome } = await db.tenant(organization, testActor, async (tx) => {
      const ignored = await run(tx, 'crm_manager', create('Ignored'), {
        records: (host) => ({
          ...real.records(host),
          async create() {
            await Promise.resolve(host.tx!.trx.raw('select 1 / 0')).catch(() => {})
            return { object: 'company' }
          },
        }),
      })
      await run(tx, 'crm_manager', create('Much later'))
      return ignored
    })
    assert.equal(outcome.status === 'failed' && outcome.error.code, 'internal_error')
    assert.equal(lines.length, 1)
    assert.ok((await namesOf()).includes('Much later'))
  })

  it('that fails raises no events', async () => {
    const event = { event: 'invoice.paid', data: { n: 1 } }
    const [raised, failed] = await db.tenant(organization, testActor, async (tx) => [
      await run(tx, 'emit_event', event),
      await run(tx, 'emit_event', event, {
        events: (host) => ({
          async emit(name, data) {
            await real.events(host).emit(name, data)
            throw new NodeError('no', 'It failed after the event.')
          },
        }),
      }),
    ])
    assert.deepEqual(
      [raised?.outcome.status, raised?.raised.map(({ name }) => name)],
      ['completed', ['invoice.paid']],
    )
    assert.deepEqual([failed?.outcome.status, failed?.raised], ['failed', []])
  })
})
