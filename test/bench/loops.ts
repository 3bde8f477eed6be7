import { FLAGS } from '../../worker/dev/flags.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { type LoadResult, load } from './load.ts'
import { longLoops } from './long-loops.ts'
import { inTurns, print, printPairs } from './report.ts'
import { prepareRuns } from './runs.ts'

const ROUNDS = 3
const SECONDS = 10
const ITEMS = 1_000

/** A for_each whose body creates a record. */
const SPEC = `name: Loop
inputs: {items: array}
nodes:
  each: {type: for_each, config: {items: "{{ inputs.items }}"}, next: {item: save, done: end}}
  save: {type: crm_manager, config: {operation: create, entity: companies, fields: {name: "Loop {{ item }}"}}}
outputs: {count: "{{ nodes.each.output.succeeded }}"}
`

/**
 * A loop over 1,000 items that creates a record of each, compared with hand-written workflows that create them in
 * pages: one after the other, and a page in one statement. A run also records the progress of each node and item.
 */
export async function benchLoops(stack: TestStack): Promise<void> {
  const bench = await prepareRuns(stack)
  await longLoops(bench)
  await bench.post('/v1/workflows', { spec: SPEC })
  const items = Array.from({ length: ITEMS }, (_, index) => index)
  const ours = (seconds: number) => load(stack.apiUrl, 1, seconds, () => bench.shot('Loop', { items }))
  for (const how of ['each', 'together']) {
    const floor = await startChild(
      './floor-loops.ts',
      [stack.databaseUrl, stack.temporalAddress, bench.organizationId, String(ITEMS), how],
      FLAGS.worker,
    )
    const theirs = (seconds: number) => floor.ask<LoadResult>({ clients: 1, seconds })
    // Warm-up, until the JIT has compiled both.
    await ours(1)
    await theirs(1)
    const pairs = await inTurns(
      ROUNDS,
      () => ours(SECONDS),
      () => theirs(SECONDS),
    )
    printPairs(`for_each, ${ITEMS} creates, ${how}`, pairs)
    const times = pairs.map(({ ours, floor }) => (ours.p50 / floor.p50).toFixed(2))
    const wanted = how === 'each' ? ' (at most 1.3 is wanted)' : ''
    print(`time of a run by that of the floor: ${times.join(', ')}${wanted}`)
    await floor.close()
  }
}
