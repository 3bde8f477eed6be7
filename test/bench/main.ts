import { optionsOf } from '../support/command.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { benchAnalytics } from './analytics.ts'
import { benchDeliveries } from './deliveries.ts'
import { benchImports } from './imports.ts'
import { benchIncoming } from './incoming.ts'
import { benchKnowledge } from './knowledge.ts'
import { benchLoops } from './loops.ts'
import { benchMcp } from './mcp.ts'
import { benchMemory } from './memory.ts'
import { benchNeighbours } from './neighbours.ts'
import { benchRecords } from './records.ts'
import { benchRuns } from './runs.ts'
import { benchShares } from './shares.ts'
import { benchStart } from './start.ts'
import { benchTriggers } from './triggers.ts'
import { benchValidate } from './validate.ts'
import { benchVolume } from './volume.ts'

/**
 * `npm run bench [-- validate shares records volume analytics knowledge runs loops triggers outgoing imports incoming mcp neighbours memory start]`:
 * each figure as a ratio to a floor measured in the same run, in turns, because machines are noisy. Asserts nothing.
 * `volume` prints plans and times of background work instead, `triggers` delays, `memory` the worker's memory
 * (`--runs=` for fewer than 20,000). Options of records and analytics: `--rows=` for fewer than a million,
 * `--database=` for a server that keeps them, `--only=` for the figures whose name contains it. `validate` prints the
 * CPU time of validating 50, 500 and 2,000 nodes, as YAML and raw; its floor is `yaml.parse` and one parse by the
 * schema of the same text. `shares` prints what shares and quotas cost, `neighbours` the latency beside a flood of
 * another organization (`--rounds=` for fewer than 8 of each, `--only=` as above). Options of outgoing: `--deliveries=`
 * and `--waiting=` for fewer than 10,000 and 100,000.
 * Option of knowledge: `--passages=` for fewer than 100,000. It prints the quality of each ranking, and its times.
 * Option of incoming: `--seconds=` for each of its three rounds, `--clients=` for others than 32.
 */
const ON_A_STACK: Record<string, (stack: TestStack) => Promise<void>> = {
  runs: benchRuns,
  loops: benchLoops,
  triggers: benchTriggers,
  outgoing: (stack) =>
    benchDeliveries(stack, { drained: Number(options.deliveries), waiting: Number(options.waiting) }),
  imports: benchImports,
  incoming: (stack) => benchIncoming(stack, Number(options.seconds), Number(options.clients)),
  mcp: benchMcp,
  neighbours: (stack) => benchNeighbours(stack, Number(options.rounds), options.only),
  memory: (stack) => benchMemory(stack, Number(options.runs)),
  start: async (stack) => {
    await stack.stop()
    await benchStart(stack)
  },
}
const ALL = ['validate', 'shares', 'records', 'volume', 'analytics', 'knowledge', ...Object.keys(ON_A_STACK)]

const USAGE = `npm run bench [-- NAME …] [options]

  Benches, all by default: ${ALL.join(', ')}

  --rows=N         records, volume and analytics: rows instead of 1,000,000
  --database=URL   records: a server that keeps them
  --only=TEXT      records, analytics and neighbours: the figures whose name contains it
  --rounds=N       neighbours: rounds of each flood instead of 8
  --passages=N     knowledge: passages instead of 100,000
  --deliveries=N   outgoing: deliveries instead of 10,000
  --waiting=N      outgoing: waiting deliveries instead of 100,000
  --seconds=N      incoming: seconds of each round instead of 5
  --clients=N      incoming: clients instead of 32
  --runs=N         memory: runs instead of 20,000`
const { positionals: wanted, values: options } = optionsOf(USAGE, {
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '1000000' },
    database: { type: 'string' },
    only: { type: 'string' },
    rounds: { type: 'string', default: '8' },
    runs: { type: 'string', default: '20000' },
    passages: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '5' },
    clients: { type: 'string', default: '32' },
    deliveries: { type: 'string', default: '10000' },
    waiting: { type: 'string', default: '100000' },
  },
})
const unknown = wanted.filter((name) => !ALL.includes(name))
if (unknown.length > 0) {
  say(`there is no bench ${unknown.join(', ')}; there are ${ALL.join(', ')}`)
  process.exit(1)
}
const chosen = ALL.filter((name) => wanted.length === 0 || wanted.includes(name))

if (chosen.includes('validate')) {
  say('validate')
  benchValidate()
}
if (chosen.includes('shares')) {
  say('shares')
  await benchShares()
}
if (chosen.includes('records')) {
  say('records')
  await benchRecords({ rows: Number(options.rows), databaseUrl: options.database, only: options.only })
}
if (chosen.includes('volume')) {
  say('volume')
  await benchVolume(Number(options.rows))
}
if (chosen.includes('analytics')) {
  say('analytics')
  await benchAnalytics(Number(options.rows), { databaseUrl: options.database, only: options.only })
}
if (chosen.includes('knowledge')) {
  say('knowledge')
  await benchKnowledge(Number(options.passages))
}
const onStack = chosen.filter((name) => name in ON_A_STACK)
if (onStack.length > 0) {
  say('starting a stack …')
  const stack = await startStack({
    env: { EGRESS_ALLOW: '127.0.0.0/8', ALLOW_INSECURE_WEBHOOKS: 'true', LOG_LEVEL: 'info' },
  })
  try {
    for (const name of onStack) {
      say(`\n${name}`)
      await ON_A_STACK[name]!(stack)
    }
  } finally {
    await stack.stop()
  }
}
process.exit(0)

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
