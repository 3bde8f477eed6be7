import { ENV } from '../../workflows/shared/limits.ts'
import { AppError, conflict } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { fieldsOf, recordChange } from './audit-log.ts'
import { limitOf, type Plan, planLimitSql, type Subscription } from './plans.ts'

/** The settings of an organization. */
export interface OrganizationSettings {
  /** ISO 4217. The default currency of amounts. */
  currency: string
  /** IANA name; workflows read it as `org.timezone`. */
  timezone: string
  /** Two letters (ISO 3166): that of phone numbers without a country code. */
  country: string | null
  /** BCP 47: how files for people write numbers. */
  locale: string | null
  /** Days for which logs of webhooks, events and deliveries are kept. */
  log_retention_days: number
  /** Days for which ended runs are kept. */
  run_retention_days: number
  /** Whether a custom field without a definition is refused. */
  strict_custom_fields: boolean
}

/** The variables of workflows, by name; workflows read them as `env.<name>`. Not for secrets. */
export type Env = Record<string, string | number | boolean>

export interface Organization extends OrganizationSettings {
  id: string
  name: string
  plan: Plan
  env: Env
  created_at: Date
}

export const ORGANIZATION_DEFAULTS: OrganizationSettings = {
  currency: 'USD',
  timezone: 'UTC',
  country: null,
  locale: null,
  log_retention_days: 30,
  run_retention_days: 90,
  strict_custom_fields: false,
}

/** SQL interval: a retention of the organization `o`, within the limit of its plan. */
export const retentionOf = (setting: 'log_retention_days' | 'run_retention_days'): string =>
  `make_interval(days => least(coalesce((o.settings ->> '${setting}')::integer, ${ORGANIZATION_DEFAULTS[setting]}),
    cast(${planLimitSql('retention_days')} as integer)))`

export async function getOrganization(tx: Tenant): Promise<Organization> {
  const { settings, ...organization } = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first('id', 'name', 'plan', 'env', 'created_at', 'settings')
  return { ...organization, ...ORGANIZATION_DEFAULTS, ...settings }
}

type Changes = {
  [K in 'name' | keyof OrganizationSettings]?: Organization[K] | undefined
} & {
  /** Values by name; null removes a variable. */
  env?: Record<string, Env[string] | null> | undefined
}

/**
 * Updates only the given settings, and only the given names of `env`. Throws `conflict` above `ENV.count` names,
 * `plan_limit` for a longer retention than the plan allows.
 */
export async function updateOrganization(
  tx: Tenant,
  { name, env, ...settings }: Changes,
): Promise<Organization> {
  await requireRetention(tx, settings)
  const changed = env && (await changedEnv(tx, env))
  await tx.trx.raw(
    `update organizations set name = coalesce(?, name), settings = settings || cast(? as jsonb),
       env = coalesce(cast(? as jsonb), env) where id = ?`,
    [name ?? null, JSON.stringify(settings), changed ? JSON.stringify(changed) : null, tx.organizationId],
  )
  const organization = await getOrganization(tx)
  const { fields } = fieldsOf({ name, ...settings })
  fields.push(...Object.keys(env ?? {}).map((of) => `env.${of}`))
  if (fields.length > 0)
    await recordChange(tx, 'organization.updated', {
      id: organization.id,
      name: organization.name,
      details: { fields },
    })
  return organization
}

/** Throws plan_limit for a retention that is longer than the plan allows. */
async function requireRetention(
  tx: Tenant,
  { log_retention_days = 0, run_retention_days = 0 }: Changes,
): Promise<void> {
  if (log_retention_days === 0 && run_retention_days === 0) return
  const subscription = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<Subscription>('plan', 'limits')
  const limit = limitOf(subscription, 'retention_days')
  for (const [param, days] of Object.entries({ log_retention_days, run_retention_days }))
    if (days > limit)
      throw new AppError('plan_limit', `${param}: the plan keeps data for at most ${limit} days`, {
        param,
        hint: 'set fewer days, or change the plan',
      })
}

/** Locks the organization, so that concurrent changes of different names are not lost. */
async function changedEnv(tx: Tenant, changes: Record<string, Env[string] | null>): Promise<Env> {
  const locked = tx.trx('organizations').where({ id: tx.organizationId }).forNoKeyUpdate()
  const before: { env: Env } = await locked.first('env')
  const all = Object.entries({ ...before.env, ...changes })
  const left = all.filter((entry): entry is [string, Env[string]] => entry[1] !== null)
  const env = Object.fromEntries(left)
  const bytes = Buffer.byteLength(JSON.stringify(env))
  if (left.length > ENV.count || bytes > ENV.bytes)
    throw conflict(
      `env would have ${left.length} variables with ${bytes} bytes: at most ${ENV.count} with ${ENV.bytes} bytes`,
      { param: 'env', hint: 'remove unused ones: {"env": {"<name>": null}}' },
    )
  return env
}

/** The names that workflows can read as `secrets.<name>` and `env.<name>`. */
export interface Environment {
  secrets: string[]
  env: Env
}

export async function getEnvironment(tx: Tenant): Promise<Environment> {
  return tx
    .trx('organizations as o')
    .where({ id: tx.organizationId })
    .first(
      'env',
      tx.trx.raw(
        'array(select s.name from secrets s where s.organization_id = o.id order by s.name) as secrets',
      ),
    )
}
