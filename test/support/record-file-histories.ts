/**
 * Records histories of imports and exports into `test/fixtures/histories`, as `record-histories.ts` does those of
 * runs: `node --import tsx test/support/record-file-histories.ts`. Stored histories are never overwritten.
 */
import { existsSync } from 'node:fs'
import { startApi } from './api.ts'
import { createTestDatabase } from './database.ts'
import { firstHistory, saveHistory } from './histories.ts'
import { importsOf } from './imports.ts'
import { until } from './until.ts'
import { startWorker } from './worker.ts'

const folder = new URL('../fixtures/histories/', import.meta.url)

const db = await createTestDatabase()
const api = await startApi(db)
const imports = importsOf(api)
const worker = await startWorker(db)

/** Each records a history. @returns the workflow's id. */
const cases: Record<string, () => Promise<string>> = {
  async 'import-completed'() {
    const { id } = await imports.run({ entity: 'contacts' }, 'email\na@x.example\nwrong\n')
    return `import:${id}`
  },
  async 'import-of-several-turns'() {
    const rows = Array.from({ length: 30_000 }, (_, i) => `many${i}@x.example\n`).join('')
    const { body } = await imports.prepare({ entity: 'contacts' }, `email\n${rows}`)
    await imports.start(body.id)
    await imports.ended(body.id, 120)
    return `import:${body.id}`
  },
  async 'import-stopped'() {
    const rows = Array.from({ length: 5_000 }, (_, i) => `stopped${i}@x.example\n`).join('')
    const { body } = await imports.prepare({ entity: 'contacts' }, `email\n${rows}`)
    await imports.start(body.id)
    await until(async () => {
      const { progress } = (await api.request('GET', `/v1/imports/${body.id}`)).body
      return progress.rows > 0 ? true : undefined
    }, 'some rows')
    await api.request('POST', `/v1/imports/${body.id}/stop`)
    return `import:${body.id}`
  },
  // Needs a server with limit.historyCount.suggestContinueAsNew=10.
  async 'import-continued-as-new'() {
    const rows = Array.from({ length: 30_000 }, (_, i) => `renewed${i}@x.example\n`).join('')
    const { body } = await imports.prepare({ entity: 'contacts' }, `email\n${rows}`)
    await imports.start(body.id)
    await imports.ended(body.id, 120)
    return `import:${body.id}`
  },
  async 'export-completed'() {
    const { body } = await api.request('POST', '/v1/exports', { body: { entity: 'contacts' } })
    return `export:${body.id}`
  },
}

for (const [name, make] of Object.entries(cases)) {
  const file = new URL(`${name}.binpb`, folder)
  if (existsSync(file)) continue
  const handle = worker.client.workflow.getHandle(await make())
  await until(async () => {
    await handle.result()
    return true
  }, 'the end')
  saveHistory(file, await firstHistory(worker.client, handle.workflowId))
}
await worker.stop()
await api.close()
await db.drop()
