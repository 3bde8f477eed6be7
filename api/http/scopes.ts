import type { KeyHolder } from '../../db/access/keys.ts'
import { ORGANIZATION_DEFAULTS } from '../../db/access/organization.ts'
import type { Plan } from '../../db/access/plans.ts'
import { allows, SCOPES, type Scope } from '../../db/model/access/scopes.ts'
import { AppError } from '../../db/model/errors.ts'

export { allows, SCOPES, type Scope } from '../../db/model/access/scopes.ts'

/**
 * The caller: an API key (on /v1 and /mcp), a user with a session (on /app and /app/v1), or an assistant of a user (on
 * /mcp).
 */
export interface Caller {
  type: 'key' | 'user'
  id: string
  name: string
  /** The grant of the user by which an assistant acts. */
  grantId?: string
  organization: {
    id: string
    name: string
    plan: Plan
    currency: string
    timezone: string
  }
  /** Whether the organization stores as much as its plan allows. */
  storageFull: boolean
  scopes: ReadonlySet<Scope>
}

/** The organization of a key holder or session. */
export const organizationOf = (
  row: Pick<KeyHolder, 'organization_id' | 'organization_name' | 'plan' | 'settings'>,
): Caller['organization'] => ({
  id: row.organization_id,
  name: row.organization_name,
  plan: row.plan,
  currency: row.settings.currency ?? ORGANIZATION_DEFAULTS.currency,
  timezone: row.settings.timezone ?? ORGANIZATION_DEFAULTS.timezone,
})

/** A scope by name. Throws for an unknown name, so that a misspelt scope grants nothing. */
export function scopeNamed(name: string): Scope {
  const scope = SCOPES.find((known) => known === name)
  if (!scope) throw new Error(`unknown scope ${name}`)
  return scope
}

/**
 * Throws `insufficient_scope` with the first scope of `needed` that the caller lacks. Handlers call
 * `request.requireScopes` instead.
 */
export function requireScopes(
  caller: Pick<Caller, 'scopes' | 'type' | 'grantId'> | undefined,
  needed: readonly Scope[],
): void {
  for (const scope of needed)
    if (!caller || !allows(caller.scopes, scope))
      throw new AppError('insufficient_scope', `the ${nameOf(caller)} lacks the scope ${scope}`)
}

/** What has the scopes of a caller. */
function nameOf(caller: Pick<Caller, 'type' | 'grantId'> | undefined): string {
  if (caller?.grantId !== undefined) return 'grant'
  return caller?.type === 'user' ? 'role' : 'key'
}
