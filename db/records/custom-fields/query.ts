import { invalid } from '../../errors.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { type Asked, namesCustomField, type Typed, typed } from '../model/custom-fields/filters.ts'
import type { EntityName } from '../model/kind.ts'
import { readDefinitions } from './rules.ts'

/**
 * Reads the filters and the sort of a list by the current definitions. Throws `validation_error` for values, operators
 * and sorts that a field's type does not have.
 */
export async function readByType(
  tx: Tenant,
  entity: EntityName,
  asked: Asked,
): Promise<Omit<Typed, 'issues'>> {
  const { issues, ...read } = await triedByType(tx, entity, asked)
  if (issues.length > 0) throw invalid(issues)
  return read
}

/** Returns the issues in place of throwing them. */
export const triedByType = async (tx: Tenant, entity: EntityName, asked: Asked): Promise<Typed> =>
  typed(namesCustomField(asked) ? await readDefinitions(tx, entity) : {}, asked)
