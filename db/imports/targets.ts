import { type Mapping, sensitiveColumns, type Targets, targetsOf } from '../model/imports/targets.ts'
import type { KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import type { ImportFile } from './imports.ts'

/** The targets of a kind. Locks the rules of its custom fields until the transaction ends. */
export const targetsFor = async (tx: Tenant, kind: KindName): Promise<Targets> =>
  targetsOf(kind, await lockFieldRules(tx, kind))

/** The file without samples of columns that are written to sensitive fields. */
export function withoutSensitive<T extends Pick<ImportFile, 'header' | 'samples'>>(
  file: T,
  mapping: Mapping,
  targets: Targets,
): T {
  const isSensitive = sensitiveColumns(file.header, mapping, targets)
  return { ...file, samples: file.samples.map((samples, i) => (isSensitive[i] ? [] : samples)) }
}
