import { invalid } from '../../model/errors.ts'
import {
  applyTypes,
  kindsWithCustomFields,
  namesStage,
  type SortFilters,
  type Typed,
} from '../../model/records/custom-fields/filters.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kinds } from '../../model/records/kinds/index.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { listPipelines } from '../pipelines/pipelines.ts'
import { readDefinitions } from './rules.ts'

/**
 * Reads the filters and the sort of a list with the current definitions. Throws `validation_error` for values,
 * operators and sorts that a field's type does not support.
 */
export async function readByType(
  tx: Tenant,
  kind: KindName,
  query: SortFilters,
): Promise<Omit<Typed, 'issues'>> {
  const { issues, ...read } = await tryReadByType(tx, kind, query)
  if (issues.length > 0) throw invalid(issues)
  return read
}

/** Like `readByType`, but returns the issues. */
export async function tryReadByType(tx: Tenant, kind: KindName, query: SortFilters): Promise<Typed> {
  const definition = kinds[kind]
  const [definitions, pipelines] = await Promise.all([
    Promise.all(
      kindsWithCustomFields(definition, query).map(
        async (entity) => [entity, await readDefinitions(tx, entity)] as const,
      ),
    ),
    namesStage(definition, query) ? listPipelines(tx) : [],
  ])
  return applyTypes(definition, { definitions: Object.fromEntries(definitions), pipelines }, query)
}
