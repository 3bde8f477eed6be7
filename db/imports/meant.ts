import { namedUsers } from '../access/members.ts'
import { type Mapping, type Targets, targetOf } from '../model/imports/targets.ts'
import { type FoundValue, proposeValues } from '../model/imports/values.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { ImportFile } from './imports.ts'

/** What the values of each column mean, where its field has a list of values: choices and users. */
export async function meantValues(
  tx: Tenant,
  { header, values }: Pick<ImportFile, 'header' | 'values'>,
  mapping: Mapping,
  targets: Targets,
): Promise<(FoundValue[] | null)[]> {
  const of = header.map((column) => (mapping[column] ? targetOf(targets, mapping[column]) : undefined))
  const users = of.some((target) => target?.type === 'user') ? await namedUsers(tx) : []
  return of.map((target, i) => proposeValues(target, values?.[i] ?? undefined, users) ?? null)
}
