import type { KindName } from '../../db/model/records/kind.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { readDefinitions } from '../../db/records/custom-fields/rules.ts'
import type { Finding } from '../../workflows/language/definition.ts'
import { defineField } from '../../workflows/language/problems.ts'
import type { Template } from '../../workflows/templates/index.ts'
import type { ApiConfig } from '../config.ts'

/**
 * Warnings about requirements of a template that the organization or the service lacks. Secrets and `env` are not
 * included: `unknownNames` reports them for any workflow.
 */
export async function unmetRequirements(
  tx: Tenant,
  { requires }: Template,
  config: ApiConfig,
): Promise<Finding[]> {
  const values: Readonly<Record<string, unknown>> = config
  const warnings: Finding[] = requires.service_settings
    .filter((variable) => values[variable] === undefined)
    .map((variable) => ({
      code: 'service_not_configured',
      message: `the service has no ${variable}: the nodes that need it fail until it is set`,
      path: '',
      hint: `ask the operator to set the environment variable ${variable} of the service`,
    }))
  for (const { entity, name, type } of requires.custom_fields) {
    const defined = (await readDefinitions(tx, entity as KindName))[name]
    if (defined?.type === type) continue
    const field = `custom_fields.${name} of ${entity}`
    warnings.push({
      code: 'unknown_custom_field',
      path: '',
      ...(defined
        ? {
            message: `${field} is defined as ${defined.type}, but the workflow needs ${type}`,
            hint: `use another custom field in the workflow, or change the type: PATCH /v1/custom-fields/${entity}/${name} {"type": "${type}"}, with the scope ${entity}:write`,
          }
        : {
            message: `${field} is not defined yet`,
            hint: defineField(entity, name, { type }),
          }),
    })
  }
  return warnings
}
