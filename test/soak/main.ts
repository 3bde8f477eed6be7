import { parseArgs } from 'node:util'
import { connect } from '../../db/postgres/connect.ts'
import { liftLimits } from '../bench/setup.ts'
import { startStack } from '../support/stack.ts'
import { account } from './account.ts'
import { measureCapacity, openLoop } from './load.ts'
import { Observer } from './observe.ts'
import { setUp } from './set-up.ts'

/**
 * `npm run soak [-- --minutes=60]`: a mixed load of records, lists, runs with an external node, webhooks in and out, at
 * half of the capacity that it first measures. Prints a line a minute, and at the end whether everything accepted was
 * accounted for, and the slope of the memory. Exits with 1 if something is missing.
 */
const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } })
const say = (line: string) => void process.stdout.write(`${line}\n`)

say('starting a stack …')
const stack = await startStack({ env: { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true' } })
const db = connect({ url: stack.databaseUrl })
let complete = false
try {
  await liftLimits(db)
  const soak = await setUp(stack)
  const capacity = await measureCapacity(soak)
  say(`capacity ${capacity.toFixed(0)} requests/s; the load is half of it`)
  const observer = new Observer(stack, db, soak, say)
  observer.start()
  await openLoop(soak, capacity / 2, Number(values.minutes) * 60_000)
  observer.stop()
  complete = await account(db, soak, say)
  observer.printSlopes()
  await soak.close()
} finally {
  await db.close()
  await stack.stop()
}
process.exit(complete ? 0 : 1)
