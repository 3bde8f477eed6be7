import { ENTITY_OF, type TargetEntity } from '../../../db/incoming/types.ts'
import type { Field } from '../../../db/records/model/kind.ts'
import { entities } from '../../../db/records/model/kinds/index.ts'

/** The target's field of this name. */
export function fieldOf(name: string, target: TargetEntity): Field | undefined {
  const { fields } = entities[ENTITY_OF[target]]
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

/** Whether a company can be named, to be found or made, which the record then belongs to. */
export const belongsToCompany = (target: TargetEntity): boolean => fieldOf('company_id', target) !== undefined
