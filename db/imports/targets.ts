import { type Targets, targetsOf } from '../model/imports/targets.ts'
import type { KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'

/** The targets of a kind. Locks the rules of its custom fields until the transaction ends. */
export const targetsFor = async (tx: Tenant, kind: KindName): Promise<Targets> =>
  targetsOf(kind, await lockFieldRules(tx, kind))
