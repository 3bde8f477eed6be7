import { deepEqual, equal, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { filesOf } from '../support/database.ts'
import { purgeAll } from '../support/purge.ts'
import { withWorker } from '../support/with-worker.ts'

const SCRIPT = fileURLToPath(new URL('../support/receive-slowly.ts', import.meta.url))

describe('a process that is killed while it receives a file', () => {
  const suite = withWorker()
  const contents = () =>
    existsSync(filesOf(suite.db))
      ? readdirSync(filesOf(suite.db), { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
      : []

  for (const where of ['middle', 'end'] as const)
    it(`leaves nothing that stays: in the ${where} of the content`, async () => {
      const { db, organizationId } = suite
      const child = spawn(
        process.execPath,
        ['--import', 'tsx', SCRIPT, db.url, filesOf(db), organizationId, where],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      await once(child.stdout!, 'data')
      child.kill('SIGKILL')
      await once(child, 'close')
      const row = () => db.system('files').where({ organization_id: organizationId }).first()
      equal((await row()).status, 'uploading')
      equal(contents().length, 1)
      equal(contents()[0]!.name.endsWith('.part'), where === 'middle')

      await purgeAll(db)
      ok(await row(), 'another process may still be receiving it')
      await db
        .system('files')
        .where({ organization_id: organizationId })
        .update({ created_at: new Date(Date.now() - 13 * 3_600_000) })
      await purgeAll(db)
      equal(await row(), undefined)
      for (;;) if (!(await db.system('deleted_files').first())) break
      deepEqual(contents(), [])
    })
})
