import type { CustomField, CustomFields } from '../../../workflows/nodes/catalogue.ts'
import { fieldsOf, recordChange } from '../../access/audit-log.ts'
import { conflict, notFound } from '../../model/errors.ts'
import { requireVersion } from '../../model/lists/version.ts'
import {
  changedDefinition,
  type DefinitionInput,
  type DefinitionPatch,
  newDefinition,
} from '../../model/records/custom-fields/definition.ts'
import type { Definition, NamedDefinition, Rules } from '../../model/records/custom-fields/types.ts'
import type { KindName } from '../../model/records/kind.ts'
import { namesOf, stageNames } from '../../model/records/pipelines/pipeline.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { listPipelines } from '../pipelines/pipelines.ts'
import { clearValues, fitValues } from './fit.ts'
import { lockFieldRules, readDefinitions } from './rules.ts'
import { forgetSensitive, requireNoValues } from './sensitive.ts'
import { freeField } from './unique.ts'

/**
 * The definitions of a kind's custom fields. A change locks the rules exclusively: all writers of the kind's custom
 * fields wait for it, so that stored values and definitions are always consistent.
 */

export const MAX_DEFINITIONS = 200
/** The maximum size of all definitions of a kind, as JSON: every create reads them. */
const MAX_BYTES = 262_144

/** The definitions, sorted by name. */
export async function listDefinitions(tx: Tenant, kind: KindName): Promise<NamedDefinition[]> {
  const definitions = await readDefinitions(tx, kind)
  return Object.keys(definitions)
    .sort()
    .map((name) => ({ name, ...definitions[name]! }))
}

/** The names and types of the custom fields of all kinds, and the pipelines and stages of deals. */
export async function listCustomFields(tx: Tenant): Promise<CustomFields> {
  const [rows, pipelines] = await Promise.all([
    tx
      .trx('custom_field_definitions')
      .where({ organization_id: tx.organizationId })
      .select<{ entity: string; definitions: Rules['definitions'] | null }[]>('entity', 'definitions'),
    listPipelines(tx),
  ])
  const custom = Object.fromEntries(
    rows.map(({ entity, definitions }) => [
      entity,
      Object.entries(definitions ?? {}).map(
        ([name, { type, options, sensitive, unique }]): CustomField => ({
          name,
          type,
          options,
          sensitive,
          unique,
        }),
      ),
    ]),
  )
  const native = (name: string, options: string[]): CustomField => ({
    name,
    type: 'select',
    options,
    isNative: true,
  })
  const places = [native('pipeline', namesOf(pipelines)), native('stage', stageNames(pipelines))]
  return { ...custom, deals: [...(custom.deals ?? []), ...places] }
}

/** Throws `not_found`. */
export async function getDefinition(tx: Tenant, kind: KindName, name: string): Promise<NamedDefinition> {
  return { name, ...definitionOf(await readDefinitions(tx, kind), name) }
}

/**
 * Throws `conflict` if the name is defined, above `MAX_DEFINITIONS`, and for stored values that do not match the type
 * or are not unique; `validation_error`.
 */
export async function createDefinition(
  tx: Tenant,
  kind: KindName,
  name: string,
  input: DefinitionInput,
): Promise<NamedDefinition> {
  const { definitions } = await lockFieldRules(tx, kind, true)
  if (Object.hasOwn(definitions, name)) throw conflict(`${name} is already defined`, { param: 'name' })
  if (Object.keys(definitions).length >= MAX_DEFINITIONS)
    throw conflict(`${kind} already have ${MAX_DEFINITIONS} definitions`, {
      hint: 'delete an unused definition',
    })
  const definition = newDefinition(name, input)
  await store(tx, kind, { ...definitions, [name]: definition })
  if (definition.sensitive) await requireNoValues(tx, kind, name)
  else await fitValues(tx, kind, name, undefined, definition)
  await recordChange(tx, 'custom_field.created', fieldNamed(kind, name))
  return { name, ...definition }
}

/**
 * Changes a definition. A patch without changes creates no version. Throws `not_found`; `version_conflict`; `conflict`
 * for stored values that do not match the change; `validation_error`.
 */
export async function updateDefinition(
  tx: Tenant,
  kind: KindName,
  name: string,
  patch: DefinitionPatch,
  ifVersion?: readonly number[],
): Promise<NamedDefinition> {
  const { definitions } = await lockFieldRules(tx, kind, true)
  const before = definitionOf(definitions, name)
  requireVersion('definition', before.version, ifVersion)
  const after = changedDefinition(name, before, patch)
  if (!after) return { name, ...before }
  await store(tx, kind, { ...definitions, [name]: after })
  await fitValues(tx, kind, name, before, after)
  await recordChange(tx, 'custom_field.updated', { ...fieldNamed(kind, name), details: fieldsOf(patch) })
  return { name, ...after }
}

/**
 * Deletes a definition. Its values stay in the records, as values without a definition; `deleteValues` removes them,
 * which updates these records. Throws `not_found`, `version_conflict`; `conflict` if too many records have a value.
 * @returns `values_deleted`: the number of records whose value was removed.
 */
export async function deleteDefinition(
  tx: Tenant,
  kind: KindName,
  name: string,
  options: { ifVersion?: readonly number[] | undefined; deleteValues: boolean },
): Promise<{ name: string; deleted_at: string; values_deleted: number }> {
  const { definitions } = await lockFieldRules(tx, kind, true)
  const before = definitionOf(definitions, name)
  requireVersion('definition', before.version, options.ifVersion)
  const { [name]: _, ...others } = definitions
  await store(tx, kind, others)
  await freeField(tx, kind, name)
  const cleared = options.deleteValues ? await clearValues(tx, kind, name) : 0
  if (options.deleteValues && before.sensitive) await forgetSensitive(tx, kind, name)
  await recordChange(tx, 'custom_field.deleted', fieldNamed(kind, name))
  return { name, deleted_at: new Date().toISOString(), values_deleted: cleared }
}

const fieldNamed = (kind: KindName, name: string) => ({ id: `${kind}.${name}`, name })

function definitionOf(definitions: Rules['definitions'], name: string): Definition {
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined
  if (!definition) throw notFound('custom field')
  return definition
}

async function store(tx: Tenant, kind: KindName, definitions: Rules['definitions']): Promise<void> {
  const json = JSON.stringify(definitions)
  const sensitive = Object.keys(definitions).filter((name) => definitions[name]!.sensitive)
  if (Buffer.byteLength(json) > MAX_BYTES)
    throw conflict(`the definitions of ${kind} would exceed ${MAX_BYTES / 1_024} KiB`, {
      hint: 'shorten options and descriptions, or delete unused definitions',
    })
  await tx
    .trx('custom_field_definitions')
    .insert({ organization_id: tx.organizationId, entity: kind, definitions: json, sensitive })
    .onConflict(['organization_id', 'entity'])
    .merge(['definitions', 'sensitive'])
}
