import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { beginAttempt, lockRun } from '../../../db/runs/state.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { call } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { queueRun } from '../../support/worker.ts'

describe('a transaction that has waited for the lock of a run', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db?.drop())

  const inTenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organizationId, testActor, work)
  const waiting = async () => {
    const { rows } = await db.system.raw<{ rows: unknown[] }>(
      `select from pg_locks where not granted
         and pid in (select pid from pg_stat_activity where datname = current_database())`,
    )
    return rows.length > 0
  }

  for (const [who, ask] of [
    ['a segment', (tx, id) => lockRun(tx, id, { temporal_run_id: 'temporal', segment: 1 })],
    ['an attempt', (tx, id) => lockRun(tx, id, undefined, '')],
  ] as [string, (tx: Tenant, id: string) => ReturnType<typeof lockRun>][])
    it(`sees what the one before it has committed: ${who}`, async () => {
      const id = await queueRun(db, organizationId, { nodes: [call('call')] })
      await db.system('run_nodes').insert({
        organization_id: organizationId,
        run_id: id,
        node_id: 'call',
        node_type: 'api_request',
        title: 'Call',
        status: 'running',
        segment: 0,
        position: 0,
        started_at: new Date(),
      })
      const token = randomUUID()
      let second: ReturnType<typeof ask> | undefined
      await inTenant(async (tx) => {
        await lockRun(tx, id, undefined, '')
        await beginAttempt(tx, { run_id: id, node: 'call' }, token)
        second = inTenant((other) => ask(other, id))
        await until(waiting, 'the second transaction waits')
      })
      assert.equal((await second)?.nodes[0]?.attempt_token, token)
    })
})
