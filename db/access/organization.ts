import type { Tenant } from '../postgres/tenancy.ts'
import type { Plan } from './plans.ts'

/** The settings of an organization. */
export interface OrganizationSettings {
  /** ISO 4217; the default of amounts without a currency. */
  currency: string
  /** IANA name; workflows read it as `org.timezone`. */
  timezone: string
  /** How long logs of webhooks, events and deliveries are kept. */
  log_retention_days: number
  /** How long ended runs are kept. */
  run_retention_days: number
  /** Whether a custom field without a definition is refused. */
  strict_custom_fields: boolean
}

export interface Organization extends OrganizationSettings {
  id: string
  name: string
  plan: Plan
  created_at: Date
}

export const ORGANIZATION_DEFAULTS: OrganizationSettings = {
  currency: 'USD',
  timezone: 'UTC',
  log_retention_days: 30,
  run_retention_days: 90,
  strict_custom_fields: false,
}

/** SQL interval: a retention of the organization `o`. */
export const retentionOf = (setting: 'log_retention_days' | 'run_retention_days'): string =>
  `make_interval(days => coalesce((o.settings ->> '${setting}')::integer, ${ORGANIZATION_DEFAULTS[setting]}))`

export async function getOrganization(tx: Tenant): Promise<Organization> {
  const { settings, ...organization } = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first('id', 'name', 'plan', 'created_at', 'settings')
  return { ...organization, ...ORGANIZATION_DEFAULTS, ...settings }
}

/** Updates the given settings only. */
export async function updateOrganization(
  tx: Tenant,
  { name, ...settings }: { [K in 'name' | keyof OrganizationSettings]?: Organization[K] | undefined },
): Promise<Organization> {
  await tx.trx.raw(
    'update organizations set name = coalesce(?, name), settings = settings || cast(? as jsonb) where id = ?',
    [name ?? null, JSON.stringify(settings), tx.organizationId],
  )
  return getOrganization(tx)
}
