import { ok } from 'node:assert/strict'
import { parse } from 'yaml'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { specSchema } from '../../../workflows/authoring/schema.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { SPEC } from '../../../workflows/shared/limits.ts'
import { lightSpec, longSpec } from '../../bench/long-spec.ts'
import { rawOf } from '../../support/raw-of.ts'
import { stepsOf } from '../../support/steps.ts'

/** A valid spec of `count` nodes in one repeat, each of which reads the result of the turn before. */
const previousSpec = (count: number): string => `name: Turns
nodes:
  again: {type: repeat, config: {until: "{{ index == 3 }}"}, next: {turn: n_2}}
${Array.from({ length: count - 1 }, (_, at) => `  n_${at + 2}: {type: emit_event, config: {event: x.y, data: {x: "{{ previous.event }}"}}}`).join('\n')}
outputs: {last: "{{ nodes.again.output.last }}"}
`

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

  const growing: Record<string, (count: number) => string> = {
    'the number of nodes': lightSpec,
    'the number of nodes that read the turn before': previousSpec,
  }
  for (const [what, spec] of Object.entries(growing)) itGrows(what, spec)
})

function itGrows(what: string, spec: (count: number) => string) {
  it(`grows with ${what}, and not with its square`, async function () {
    if (process.env.NODE_V8_COVERAGE) this.skip()
    const taken = (nodes: number) => {
      const text = spec(nodes)
      return stepsOf(() => {
        for (const { result } of [validateSpec(text, catalogue), validateDefinition(rawOf(text), catalogue)])
          ok(result.valid, JSON.stringify(result.errors))
      })
    }
    const few = await taken(SPEC.nodes / 10)
    const growth = (await taken(SPEC.nodes)) / few
    ok(growth < 15, `${growth.toFixed(0)} times the steps for 10 times the nodes`)
  })
}
