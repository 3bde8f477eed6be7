import { deepEqual, equal, ok } from 'node:assert/strict'
import { catalogue } from '../../../api/v1/catalogue.ts'
import { validateDefinition, validateSpec } from '../../../workflows/authoring/validate.ts'
import { CODES, type CodeEntry } from '../../../workflows/language/finding-codes.ts'

const findingsOf = (text: string) => {
  const { result } = text.startsWith('{')
    ? validateDefinition(JSON.parse(text), catalogue)
    : validateSpec(text, catalogue)
  return result
}
const codesOf = (text: string) => {
  const { errors, warnings } = findingsOf(text)
  return [...new Set([...errors, ...warnings].map(({ code }) => code))]
}

describe('the codes of findings', () => {
  const entries = Object.entries<CodeEntry>(CODES)

  for (const [code, { severity, example }] of entries.filter(([, entry]) => entry.example))
    it(`${code}: its example has this finding only, and the mended one none`, () => {
      deepEqual(codesOf(example!.wrong), [code])
      equal(findingsOf(example!.wrong).valid, severity === 'warning')
      deepEqual(codesOf(example!.right), [])
    })

  it('have an example unless the finding depends on the organization or on size', () => {
    const without = entries.filter(([, { example }]) => !example).map(([code]) => code)
    deepEqual(without, [
      'yaml_limit',
      'unknown_pool',
      'timeout_too_long',
      'unknown_workflow',
      'unraised_event',
      'unlike_sample',
      'draft_workflow',
      'deprecated_node',
      'workflow_inputs',
      'workflow_outputs',
      'unknown_secret',
      'unknown_env',
      'unknown_custom_field',
      'reads_mask',
      'service_not_configured',
    ])
    for (const [code, { meaning, mend }] of entries) ok(meaning.length > 20 && mend.length >= 10, code)
  })

  it('yaml_limit: a text that is too deeply nested has it', () => {
    deepEqual(codesOf(`name: Deep\nnodes: ${'['.repeat(200)}${']'.repeat(200)}`), ['yaml_limit'])
  })
})
