import { type Mapping, sensitiveColumns, type Targets, targetsOf } from '../model/imports/targets.ts'
import type { KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import type { ImportFile } from './imports.ts'

/** The targets of a kind. Locks the rules of its custom fields until the transaction ends. */
export const targetsFor = async (tx: Tenant, kind: KindName, by?: string | null): Promise<Targets> =>
  targetsOf(kind, await lockFieldRules(tx, kind), by)

/** The file without samples and values of columns that are written to sensitive fields. */
export function withoutSensitive(file: ImportFile, mapping: Mapping, targets: Targets): ImportFile {
  const isSensitive = sensitiveColumns(file.header, mapping, targets)
  const { samples, values, meant } = file
  return {
    ...file,
    samples: samples.map((own, i) => (isSensitive[i] ? [] : own)),
    ...(values && { values: values.map((own, i) => (isSensitive[i] ? null : own)) }),
    ...(meant && { meant: meant.map((own, i) => (isSensitive[i] ? null : own)) }),
  }
}
