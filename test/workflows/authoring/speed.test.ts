import { ok } from 'node:assert/strict'
import { parse } from 'yaml'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { specSchema } from '../../../workflows/authoring/schema.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { SPEC } from '../../../workflows/shared/limits.ts'
import { median } from '../../bench/load.ts'
import { lightSpec, longSpec } from '../../bench/long-spec.ts'
import { inTurns } from '../../bench/validate.ts'
import { cpuTime } from '../../support/cpu-time.ts'
import { rawOf } from '../../support/raw-of.ts'

/** Bounds are several times what is measured without a load: a busy machine slows the two sides of a ratio differently. */
describe('the speed of validation', function () {
  this.timeout(60_000)

  it('is near that of parsing the YAML', () => {
    const text = longSpec(50)
    const raw = rawOf(text)
    const { floor, yaml, definition } = inTurns(60, {
      floor: () => specSchema.parse(parse(text)),
      yaml: () => validateSpec(text, catalogue),
      definition: () => validateDefinition(raw, catalogue),
    })
    const ratio = median(yaml.map((ms, round) => ms / floor[round]!))
    const checks = median(definition.map((ms, round) => ms / floor[round]!))
    ok(ratio < 6, `${ratio.toFixed(2)} times the time of parsing`)
    ok(checks < 3, `the checks take ${checks.toFixed(2)} times as long as parsing`)
  })

  it('grows with the number of nodes, and not with its square', () => {
    const taken = (nodes: number) => {
      const text = lightSpec(nodes)
      const started = cpuTime()
      for (const { result } of [validateSpec(text, catalogue), validateDefinition(rawOf(text), catalogue)])
        ok(result.valid, JSON.stringify(result.errors))
      return cpuTime() - started
    }
    const few = median([1, 2, 3, 4, 5].map(() => taken(SPEC.nodes / 10)))
    const growth = taken(SPEC.nodes) / few
    ok(growth < 50, `${growth.toFixed(0)} times the time for 10 times the nodes`)
  })
})
