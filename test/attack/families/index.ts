import type { Family } from '../family.ts'
import { computation } from './computation.ts'
import { csrf } from './csrf.ts'
import { egress } from './egress.ts'
import { rowSecurity } from './row-security.ts'
import { sandbox } from './sandbox.ts'
import { scopes } from './scopes.ts'
import { templates } from './templates.ts'
import { tenants } from './tenants.ts'

/**
 * Every kind of attack. To add one (what an organization takes from the others: storms of runs, servers that never
 * answer, bytes, mails), add a file beside this one, and a line here.
 */
export const FAMILIES: Family[] = [
  tenants,
  scopes,
  csrf,
  rowSecurity,
  egress,
  sandbox,
  templates,
  computation,
]
