import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { lockFieldRules } from '../../db/records/custom-fields/rules.ts'
import { referencesIn } from '../../workflows/authoring/validate.ts'
import type { Definition, Finding } from '../../workflows/language/definition.ts'
import { defineField, makeUnique, notUnique, pointer } from '../../workflows/language/problems.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import type { ApiConfig } from '../config.ts'
import { missingReferences } from './unknown-names.ts'

/**
 * All that a saved definition needs and that is not there, so that some node is certain to fail: secrets, environment
 * variables, workflows, worker pools, settings of the service, custom fields. Paths lead into the definition.
 */
export async function missingFor(tx: Tenant, definition: Definition, config: ApiConfig): Promise<Finding[]> {
  return [
    ...(await missingReferences(tx, referencesIn(definition), { ...config })),
    ...(await missingCustomFields(tx, definition)),
  ]
}

async function missingCustomFields(tx: Tenant, { nodes }: Definition): Promise<Finding[]> {
  const found: Finding[] = []
  for (const [index, { id, type, config }] of nodes.entries()) {
    for (const { entity, name, path, unique } of findNodeType(type)?.customFields(config) ?? []) {
      const kind = kindNames.find((one) => one === entity)
      if (!kind) continue
      const { definitions, strict } = await lockFieldRules(tx, kind)
      const defined = Object.hasOwn(definitions, name) ? definitions[name] : undefined
      // Without the strict mode a value without a definition is stored as it is.
      const isMissing = unique ? defined?.unique !== true : strict && !defined
      const place = { path: pointer('nodes', index, 'config', ...path), node_id: id }
      if (isMissing) found.push({ ...problem(kind, name, unique, defined !== undefined), ...place })
    }
  }
  return found
}

const problem = (kind: KindName, name: string, unique: boolean, isDefined: boolean) => ({
  code: 'unknown_custom_field' as const,
  message: unique
    ? notUnique(kind, name)
    : `custom_fields.${name} of ${kind} is not defined: the organization refuses it`,
  hint: isDefined ? makeUnique(kind, name) : defineField(kind, name, { unique }),
})
