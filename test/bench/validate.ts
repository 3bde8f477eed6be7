import { parse } from 'yaml'
import { catalogue } from '../../api/v1/catalogue.ts'
import { specSchema } from '../../workflows/authoring/schema.ts'
import { validateDefinition, validateSpec } from '../../workflows/authoring/validate.ts'
import { cpuTime } from '../support/cpu-time.ts'
import { rawOf } from '../support/raw-of.ts'
import { median, summary } from './load.ts'
import { lightSpec, longSpec } from './long-spec.ts'
import { print } from './report.ts'

const SIZES = [
  { nodes: 50, rounds: 300, spec: longSpec },
  { nodes: 500, rounds: 40, spec: longSpec },
  { nodes: 2_000, rounds: 20, spec: lightSpec },
]

/** CPU milliseconds of validating a spec, the same as a raw definition, and their floor, in turns. */
export function benchValidate(): void {
  for (const { nodes, rounds, spec } of SIZES) {
    const text = spec(nodes)
    const raw = rawOf(text)
    const { floor, yaml, definition } = inTurns(rounds, {
      floor: () => specSchema.parse(parse(text)),
      yaml: () => validateSpec(text, catalogue),
      definition: () => validateDefinition(raw, catalogue),
    })
    const ratio = median(yaml.map((ms, round) => ms / floor[round]!))
    print(
      [
        `${nodes} nodes, ${(text.length / 1024).toFixed(0)} KiB`.padEnd(22),
        `YAML ${times(yaml)}`,
        `raw ${times(definition)}`,
        `floor ${times(floor)}`,
        `YAML is ${ratio.toFixed(2)} of its floor`,
      ].join('  '),
    )
  }
}

const times = (ms: number[]) => {
  const { p50, p99 } = summary(ms, 1)
  return `p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} ms`
}

/** The times of each task, after a few rounds of warm-up. */
function inTurns<Name extends string>(
  rounds: number,
  tasks: Record<Name, () => unknown>,
): Record<Name, number[]> {
  const entries = Object.entries(tasks) as [Name, () => unknown][]
  const found = Object.fromEntries(entries.map(([name]) => [name, []])) as unknown as Record<Name, number[]>
  for (let round = -Math.min(rounds, 30); round < rounds; round++)
    for (const [name, task] of entries) {
      const started = cpuTime()
      task()
      if (round >= 0) found[name].push(cpuTime() - started)
    }
  return found
}
