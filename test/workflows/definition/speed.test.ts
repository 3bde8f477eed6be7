import { ok } from 'node:assert/strict'
import { parse } from 'yaml'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { specSchema } from '../../../workflows/definition/schema.ts'
import { validateDefinition, validateSpec } from '../../../workflows/definition/validate.ts'
import { SPEC } from '../../../workflows/limits.ts'
import { median } from '../../bench/load.ts'
import { lightSpec, longSpec } from '../../bench/long-spec.ts'
import { inTurns } from '../../bench/validate.ts'
import { cpuTime } from '../../support/cpu-time.ts'
import { rawOf } from '../../support/raw-of.ts'

describe('the speed of validation', function () {
  this.timeout(60_000)

  it('is that of parsing the YAML: all checks together take less', () => {
    const text = longSpec(50)
    const raw = rawOf(text)
    const { floor, yaml, definition } = inTurns(60, {
      floor: () => specSchema.parse(parse(text)),
      yaml: () => validateSpec(text, catalogue),
      definition: () => validateDefinition(raw, catalogue),
    })
    const ratio = median(yaml.map((ms, round) => ms / floor[round]!))
    const checks = median(definition.map((ms, round) => ms / floor[round]!))
    ok(ratio < 3, `${ratio.toFixed(2)} times the time of parsing`)
    ok(checks < 1, `the checks take ${checks.toFixed(2)} times as long as parsing`)
  })

  it('allows as many nodes as a workflow may have, as YAML and raw', () => {
    const text = lightSpec(SPEC.nodes)
    const started = cpuTime()
    for (const { result } of [validateSpec(text, catalogue), validateDefinition(rawOf(text), catalogue)])
      ok(result.valid, JSON.stringify(result.errors))
    const ms = cpuTime() - started
    ok(ms < 2_000, `${ms.toFixed(0)} ms`)
  })
})
