import { tasks as mapping } from '../../db/model/incoming/map-body.ts'
import { extract } from '../../db/model/knowledge/files/extract.ts'
import { passagesOf } from '../../db/model/knowledge/passages.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import { diffTexts } from '../../workflows/authoring/diff-texts.ts'
import { type KnownValues, withKnownValues } from '../../workflows/authoring/known-values.ts'
import { parseYaml } from '../../workflows/authoring/parse.ts'
import { type Validated, validateDefinition, validateSpec } from '../../workflows/authoring/validate.ts'
import { writeSpec } from '../../workflows/authoring/write/write-spec.ts'
import type { Program } from '../../workflows/language/definition.ts'
import { type CustomFields, withCustomFields } from '../../workflows/nodes/catalogue.ts'
import { isObject } from '../../workflows/shared/is-object.ts'
import { catalogue } from '../v1/catalogue.ts'

/**
 * The computations of the API whose cost a tenant controls. Small ones run in the event loop, others in a thread. All
 * are pure.
 */
export const tasks = { validate, writeSpec, diffTexts, parseCases, passagesOf, extract, ...mapping }

export interface Source {
  spec?: string | undefined
  definition?: Record<string, unknown> | undefined
  /** The custom fields of the organization. */
  customFields?: CustomFields | undefined
  known?: KnownValues | undefined
}

/** The cases of a test of a workflow, written as YAML: a list, or a mapping with `cases`. `errors`: why it is no YAML. */
function parseCases(text: string): { cases: unknown; errors: string[] } {
  const { value, problems } = parseYaml(text)
  const cases = isObject(value) && Object.hasOwn(value, 'cases') ? value.cases : value
  const errors = problems.map(
    ({ message, line = 1, column = 1 }) => `line ${line}, column ${column}: ${message}`,
  )
  return { cases, errors }
}

/** Checks a spec or a raw definition, and compiles it if it is valid. */
function validate({ spec, definition, customFields, known }: Source): Validated & { program?: Program } {
  const own = customFields ? withCustomFields(catalogue, customFields) : catalogue
  const whole = known ? withKnownValues(own, known) : own
  const validated = spec === undefined ? validateDefinition(definition, whole) : validateSpec(spec, whole)
  return validated.definition ? { ...validated, program: compile(validated.definition) } : validated
}
