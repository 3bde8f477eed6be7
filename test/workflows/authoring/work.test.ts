import { ok } from 'node:assert/strict'
import { parse } from 'yaml'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { specSchema } from '../../../workflows/authoring/schema.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { SPEC } from '../../../workflows/shared/limits.ts'
import { lightSpec, longSpec } from '../../bench/long-spec.ts'
import { rawOf } from '../../support/raw-of.ts'
import { stepsOf } from '../../support/steps.ts'

/** `npm run bench -- validate` measures its time. */
describe('the work of validation', () => {
  it('is near that of parsing the YAML', async function () {
    if (process.env.NODE_V8_COVERAGE) this.skip()
    const text = longSpec(50)
    const raw = rawOf(text)
    const floor = await stepsOf(() => specSchema.parse(parse(text)))
    const ratio = (await stepsOf(() => validateSpec(text, catalogue))) / floor
    const checks = (await stepsOf(() => validateDefinition(raw, catalogue))) / floor
    ok(ratio < 2, `${ratio.toFixed(2)} times the steps of parsing`)
    ok(checks < 0.55, `the checks take ${checks.toFixed(2)} times as many steps as parsing`)
  })

  it('grows with the number of nodes, and not with its square', async function () {
    if (process.env.NODE_V8_COVERAGE) this.skip()
    const taken = (nodes: number) => {
      const text = lightSpec(nodes)
      return stepsOf(() => {
        for (const { result } of [validateSpec(text, catalogue), validateDefinition(rawOf(text), catalogue)])
          ok(result.valid, JSON.stringify(result.errors))
      })
    }
    const few = await taken(SPEC.nodes / 10)
    const growth = (await taken(SPEC.nodes)) / few
    ok(growth < 15, `${growth.toFixed(0)} times the steps for 10 times the nodes`)
  })
})
