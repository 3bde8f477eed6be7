import { createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { startWorker } from '../support/worker.ts'
import { startApi } from '../support/api.ts'
import { createWorkflow } from '../../db/workflows.ts'
import { compile } from '../../workflows/definition/compile.ts'
import { summary } from '../bench/load.ts'
describe('latency', () => {
  it('measures', async function () {
    this.timeout(60000)
    const db: TestDatabase = await createTestDatabase()
    const api = await startApi(db)
    const worker = await startWorker(db)
    const ids = ['a','b','c','d','e']
    const definition = { name: 'L', trigger: { type: 'manual' as const }, inputs: {}, outputs: {}, settings: {},
      nodes: ids.map((id) => ({ id, type: 'set_fields', config: { fields: { x: 1 } } })),
      edges: ids.slice(1).map((id, i) => ({ from: ids[i]!, handle: 'success', to: id })) }
    await db.tenant(api.organizationId, testActor, (tx) => createWorkflow(tx, { name: 'L', description: null, spec: null, definition, plan: compile(definition) }))
    const one = async () => { const t = performance.now(); const r = await api.request('POST', '/v1/workflows/run-by-name', { body: { name: 'L', confirm: true }, headers: { Prefer: 'wait=10' } }); if (r.body.status !== 'completed') console.log(r.status, JSON.stringify(r.body)); return performance.now() - t }
    for (let i = 0; i < 20; i++) await one()
    const times: number[] = []
    let t = performance.now()
    for (let i = 0; i < 60; i++) times.push(await one())
    console.log('c1', summary(times, (performance.now() - t) / 1000))
    const many: number[] = []
    t = performance.now()
    await Promise.all(Array.from({ length: 50 }, async () => { for (let i = 0; i < 10; i++) many.push(await one()) }))
    console.log('c50', summary(many, (performance.now() - t) / 1000))
    const rows = await db.system.raw("select percentile_cont(0.5) within group (order by extract(epoch from ended_at - created_at)) as total from runs")
    console.log(rows.rows)
    await worker.stop(); await api.close(); await db.drop()
  })
})
