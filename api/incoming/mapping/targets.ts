import { ENTITY_OF, type TargetEntity } from '../../../db/incoming/types.ts'
import type { Field } from '../../../db/records/model/kind.ts'
import { entities } from '../../../db/records/model/kinds/index.ts'

/** The field of the target. */
export function fieldOf(name: string, target: TargetEntity): Field | undefined {
  const { fields } = entities[ENTITY_OF[target]]
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

/** Whether the target has a company, which is found or created by name. */
export const belongsToCompany = (target: TargetEntity): boolean => fieldOf('company_id', target) !== undefined
