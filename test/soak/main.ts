import { connect } from '../../db/postgres/connect.ts'
import { liftLimits } from '../bench/setup.ts'
import { account, drained, isComplete, linesOf } from '../load/account.ts'
import { emptyLedger } from '../load/ledger.ts'
import { startOutside } from '../load/outside.ts'
import { prepareTarget } from '../load/target.ts'
import { optionsOf } from '../support/command.ts'
import { startStack } from '../support/stack.ts'
import { measureCapacity, openLoop, type TimedLoad } from './load.ts'
import { Observer } from './observe.ts'

/**
 * `npm run soak [-- --minutes=60] [--rate=20]`: a mixed load of records, lists, runs with an external node, webhooks in
 * and out, at a rate of requests per second; by default at half of the capacity, which it measures first. Prints a line
 * a minute, and finally whether all accepted requests are accounted for, and the slope of the memory. Exits with 1 if
 * something is missing.
 */
const USAGE = `npm run soak [-- --minutes=60] [--rate=20]

  --minutes=N  how long
  --rate=N     requests per second; default: half of the capacity, which it measures first`
const { values } = optionsOf(USAGE, {
  options: { minutes: { type: 'string', default: '60' }, rate: { type: 'string' } },
})
const minutes = Number(values.minutes)
const say = (line: string) => void process.stdout.write(`${line}\n`)

const DRAIN_MS = 300_000

say('starting a stack …')
const stack = await startStack({ env: { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true' } })
const db = connect({ url: stack.databaseUrl })
const outside = await startOutside()
let complete = false
try {
  await liftLimits(db)
  const ledger = emptyLedger()
  const giveUp = AbortSignal.timeout((minutes + 2) * 60_000)
  const load: TimedLoad = {
    target: await prepareTarget(stack, outside),
    ledger,
    giveUp,
    begun: [],
    times: [],
  }
  const rate = values.rate ? Number(values.rate) : (await capacityOf(load)) / 2
  const observer = new Observer(stack, db, load, say)
  observer.start()
  await openLoop(load, rate, minutes * 60_000)
  observer.stop()
  await drained(db, DRAIN_MS)
  const accounted = await account({ db, ledger, outside })
  for (const line of linesOf(accounted)) say(line)
  say(`requests that failed and were repeated: ${ledger.failures}`)
  complete = isComplete(accounted)
  observer.printSlopes()
} finally {
  await db.close()
  await stack.stop()
  await outside.close()
}
process.exit(complete ? 0 : 1)

async function capacityOf(load: TimedLoad): Promise<number> {
  const capacity = await measureCapacity(load, () => drained(db, DRAIN_MS))
  say(`capacity ${capacity.toFixed(0)} requests/s; the load is half of it`)
  return capacity
}
