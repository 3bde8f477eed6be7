import { isDeepStrictEqual } from 'node:util'
import { conflict, type Issue, invalid, notFound } from '../../errors.ts'
import { requireVersion } from '../../lists/version.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { tooMuch } from '../model/custom-fields/shape.ts'
import {
  type CustomFieldType,
  customTypes,
  type Definition,
  readValue,
  UNIQUE_TYPES,
} from '../model/custom-fields/types.ts'
import type { EntityName } from '../model/kind.ts'
import { clearValues, fitValues } from './fit.ts'
import { holdRules, type Rules, readDefinitions } from './rules.ts'

/**
 * The definitions of a kind's custom fields. Who changes one has all writers of the kind's custom fields wait, so that
 * the stored values and the definitions agree at any moment.
 */

export const MAX_DEFINITIONS = 200
/** Of all of a kind together, as JSON: every new record has them read. */
const MAX_BYTES = 262_144

/** A definition with what it is known by, as the API shows it. */
export type NamedDefinition = Definition & { name: string }

/** What a client says of a definition; all of it is checked here, for a part means nothing without the rest. */
export interface DefinitionInput {
  type: CustomFieldType
  label?: string | undefined
  description?: string | null | undefined
  required?: boolean | undefined
  unique?: boolean | undefined
  options?: string[] | null | undefined
  default?: unknown
}

export type DefinitionPatch = Omit<DefinitionInput, 'type'> & { type?: CustomFieldType | undefined }

/** By name. */
export async function listDefinitions(tx: Tenant, entity: EntityName): Promise<NamedDefinition[]> {
  const definitions = await readDefinitions(tx, entity)
  return Object.keys(definitions)
    .sort()
    .map((name) => ({ name, ...definitions[name]! }))
}

/** Throws `not_found`. */
export async function getDefinition(tx: Tenant, entity: EntityName, name: string): Promise<NamedDefinition> {
  return { name, ...definitionOf(await readDefinitions(tx, entity), name) }
}

/**
 * Throws `conflict` for a name that is defined, for more than `MAX_DEFINITIONS`, and for stored values that are none
 * of the type or not unique; `validation_error`.
 */
export async function createDefinition(
  tx: Tenant,
  entity: EntityName,
  name: string,
  input: DefinitionInput,
): Promise<NamedDefinition> {
  const { definitions } = await holdRules(tx, entity, true)
  if (Object.hasOwn(definitions, name)) throw conflict(`${name} is defined already`, { param: 'name' })
  if (Object.keys(definitions).length >= MAX_DEFINITIONS)
    throw conflict(`${entity} have ${MAX_DEFINITIONS} definitions already`, {
      hint: 'delete one that is not used any more',
    })
  const now = new Date().toISOString()
  const definition = completed(name, input, { version: 1, created_at: now, updated_at: now })
  await store(tx, entity, { ...definitions, [name]: definition })
  await fitValues(tx, entity, name, undefined, definition)
  return { name, ...definition }
}

/**
 * Changes what `patch` names. A change that changes nothing makes no version. Throws `not_found`; `version_conflict`;
 * `conflict` for stored values that do not fit, in which case nothing is changed; `validation_error`.
 */
export async function updateDefinition(
  tx: Tenant,
  entity: EntityName,
  name: string,
  patch: DefinitionPatch,
  ifVersion?: readonly number[],
): Promise<NamedDefinition> {
  const { definitions } = await holdRules(tx, entity, true)
  const before = definitionOf(definitions, name)
  requireVersion('definition', before.version, ifVersion)
  const { version, created_at, updated_at, ...said } = before
  // Options belong to the type that had them, unless both types have some.
  const wasSelect = before.options !== null
  const becomes = patch.type ?? before.type
  const kept = wasSelect && !hasOptions(becomes) ? { ...said, options: null } : said
  const same = completed(name, { ...kept, ...patch, type: becomes }, { version, created_at, updated_at })
  if (isDeepStrictEqual(same, before)) return { name, ...before }
  const after = { ...same, version: version + 1, updated_at: new Date().toISOString() }
  await store(tx, entity, { ...definitions, [name]: after })
  await fitValues(tx, entity, name, before, after)
  return { name, ...after }
}

/**
 * The values stay where they are, as values without a definition, unless `deleteValues`: then they are taken from the
 * records, each of which changes. Throws `not_found`, `version_conflict`; `conflict` where too many have one.
 * @returns how many records had a value taken.
 */
export async function deleteDefinition(
  tx: Tenant,
  entity: EntityName,
  name: string,
  options: { ifVersion?: readonly number[] | undefined; deleteValues: boolean },
): Promise<{ name: string; deleted_at: string; values_deleted: number }> {
  const { definitions } = await holdRules(tx, entity, true)
  const before = definitionOf(definitions, name)
  requireVersion('definition', before.version, options.ifVersion)
  const { [name]: _, ...others } = definitions
  await store(tx, entity, others)
  await tx.trx('custom_field_values').where({ organization_id: tx.organizationId, entity, name }).delete()
  const cleared = options.deleteValues ? await clearValues(tx, entity, name) : 0
  return { name, deleted_at: new Date().toISOString(), values_deleted: cleared }
}

const hasOptions = (type: CustomFieldType) => type === 'select' || type === 'multi_select'

/** What contradicts itself in a definition, of which other parts may be wrong and left out. */
export const contradictions = (input: DefinitionInput): Issue[] => readInput('', input).issues

type Stamps = Pick<Definition, 'version' | 'created_at' | 'updated_at'>

/** The whole of a definition, or throws `validation_error` with all that contradicts itself in it. */
function completed(name: string, input: DefinitionInput, stamps: Stamps): Definition {
  const { said, issues } = readInput(name, input)
  if (issues.length > 0) throw invalid(issues)
  return { ...said, ...stamps }
}

function readInput(
  name: string,
  input: DefinitionInput,
): { said: Omit<Definition, keyof Stamps>; issues: Issue[] } {
  const { type, label = name, unique = false, required = false } = input
  const options = input.options ?? null
  const issues: Issue[] = []
  const wrong = (field: string, msg: string, hint?: string) =>
    issues.push({ loc: ['body', field], msg, type: 'invalid_value', ...(hint ? { hint } : {}) })
  if (hasOptions(type) && !options?.length) wrong('options', `a field of type ${type} needs options`)
  if (!hasOptions(type) && options) wrong('options', `a field of type ${type} has no options`)
  if (unique && !customTypes[type].canBeUnique)
    wrong('unique', `a field of type ${type} cannot be unique`, `types that can: ${UNIQUE_TYPES.join(', ')}`)
  let fallback: unknown = null
  if (input.default !== undefined && input.default !== null) {
    if (unique) wrong('default', 'a unique field has no default, for all records would have the same value')
    const reading = readValue({ type, options: options ?? [] }, input.default)
    if ('msg' in reading) wrong('default', reading.msg)
    else fallback = reading.value
    for (const { msg } of tooMuch({ [name]: fallback })) wrong('default', msg)
  }
  const description = input.description ?? null
  return { said: { type, label, description, required, unique, options, default: fallback }, issues }
}

function definitionOf(definitions: Rules['definitions'], name: string): Definition {
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined
  if (!definition) throw notFound('custom field')
  return definition
}

async function store(tx: Tenant, entity: EntityName, definitions: Rules['definitions']): Promise<void> {
  const json = JSON.stringify(definitions)
  if (Buffer.byteLength(json) > MAX_BYTES)
    throw conflict(`the definitions of ${entity} would be larger than ${MAX_BYTES / 1_024} KiB together`, {
      hint: 'shorten options and descriptions, or delete what is not used any more',
    })
  await tx
    .trx('custom_field_definitions')
    .insert({ organization_id: tx.organizationId, entity, definitions: json })
    .onConflict(['organization_id', 'entity'])
    .merge(['definitions'])
}
