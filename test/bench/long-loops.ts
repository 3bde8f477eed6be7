import { setTimeout as sleep } from 'node:timers/promises'
import { print } from './report.ts'
import type { Bench } from './runs.ts'

const EACH = (body: string) => `inputs: {items: array}
nodes:
  each: {type: for_each, config: {items: "{{ inputs.items }}"}, next: {item: one, done: end}}
  one: ${body}
`

/** Long loops, each with the most seconds that it may take. */
const CASES = [
  {
    name: 'for_each, 3,000 light items',
    seconds: 60,
    items: 3_000,
    spec: EACH('{type: set_fields, config: {fields: {text: "Item {{ item }}"}}}'),
  },
  {
    name: 'for_each, 10,000 creates',
    seconds: 25,
    items: 10_000,
    spec: EACH(
      '{type: crm_manager, config: {operation: create, entity: companies, fields: {name: "Long {{ item }}"}}}',
    ),
  },
  {
    name: 'repeat, 1,000 turns',
    seconds: 30,
    items: 1_000,
    spec: `inputs: {items: array}
nodes:
  turns:
    type: repeat
    config: {until: "{{ index == 999 }}", max_turns: 1000, initial: 0, output: "{{ nodes.add.output.sum }}"}
    next: {turn: add, done: end}
  add: {type: set_fields, config: {fields: {sum: "{{ previous | plus: 1 }}"}}}
`,
  },
]

/** Prints how long one run of each long loop takes, with its rate. */
export async function longLoops(bench: Bench): Promise<void> {
  for (const { name, seconds, items, spec } of CASES) {
    await bench.post('/v1/workflows', { spec: `name: "${name}"\n${spec}` })
    const list = Array.from({ length: items }, (_, index) => index)
    const { path, ...request } = bench.shot(name, { items: list })
    const started = performance.now()
    const answer = await fetch(bench.url + path, { ...request, signal: AbortSignal.timeout(40_000) })
    let run = (await answer.json()) as { run_id: string; status: string }
    while (['queued', 'running'].includes(run.status)) {
      await sleep(200)
      run = await bench.get(`/v1/runs/${run.run_id}`)
    }
    const taken = (performance.now() - started) / 1_000
    print(
      `${name.padEnd(28)}  ${run.status} in ${taken.toFixed(1)} s, ${(items / taken).toFixed(0)}/s (at most ${seconds} s is wanted)`,
    )
  }
}
