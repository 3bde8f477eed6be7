import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from '../../db/postgres/connect.ts'
import { createLogger } from '../../db/process/log.ts'
import { diskStorage } from '../../db/process/storage/disk.ts'
import { FileStore } from '../../db/stored-files/store.ts'

/**
 * A process that receives a file and never stores it: it stops in the middle of the content, or behind its end. Its
 * arguments: the URL of the database, the folder, the organization, `middle` or `end`.
 */
const [url = '', folder = '', organizationId = '', where] = process.argv.slice(2)
const db = connect({ url, poolSize: 2, applicationName: 'agx test' })
const store = new FileStore({
  storage: diskStorage(folder),
  keys: Buffer.alloc(32),
  log: createLogger('worker', 'silent'),
})

async function* content() {
  yield randomBytes(500_000)
  if (where === 'end') return
  process.stdout.write('there\n')
  await pause(60_000)
}

const given = { name: 'x.bin', content_type: 'application/pdf', bytes: undefined, run_id: null }
await store.receive(
  organizationId,
  (work) => db.tenant(organizationId, { type: 'system', id: null }, work),
  given,
  content(),
)
process.stdout.write('there\n')
await pause(60_000)
