import { startStack, type TestStack } from '../support/stack.ts'
import { benchDeliveries } from './deliveries.ts'
import { benchRecords } from './records.ts'
import { benchRuns } from './runs.ts'
import { benchStart } from './start.ts'

/**
 * `npm run bench [-- records runs deliveries start]`: each figure as a ratio to a floor measured in the same run, in
 * turns, for machines are noisy. Nothing here is asserted.
 */
const BENCHES: Record<string, (stack: TestStack) => Promise<void>> = {
  records: benchRecords,
  runs: benchRuns,
  deliveries: benchDeliveries,
}

const wanted = process.argv.slice(2)
const chosen = wanted.length > 0 ? wanted : [...Object.keys(BENCHES), 'start']
const unknown = chosen.filter((name) => name !== 'start' && !BENCHES[name])
if (unknown.length > 0) {
  say(`there is no bench ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}, start`)
  process.exit(1)
}

say('starting a stack …')
const stack = await startStack({
  env: { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true', LOG_LEVEL: 'info' },
})
try {
  for (const name of chosen) {
    if (name === 'start') continue
    say(`\n${name}`)
    await BENCHES[name]!(stack)
  }
} finally {
  await stack.stop()
}
if (chosen.includes('start')) {
  say('\nstart')
  await benchStart(stack)
}
process.exit(0)

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
