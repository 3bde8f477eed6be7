import { FILES } from '../../workflows/shared/limits.ts'
import { AppError } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Subscription plans and their limits. */

export const PLANS = ['free', 'professional', 'enterprise'] as const
export type Plan = (typeof PLANS)[number]

export interface PlanLimits {
  incoming_webhooks: number
  /** Verified requests to all incoming webhooks in a calendar month (UTC). */
  incoming_per_month: number
  /** Maximum rate limit (requests per minute) of one incoming webhook, including the burst. */
  incoming_per_minute: number
  outgoing_webhooks: number
  /** Deliveries to all outgoing webhooks in a calendar month (UTC); retries do not count. */
  outgoing_per_month: number
  /** Requests per minute to /v1: of the organization, and of each key. */
  requests_per_minute: number
  requests_per_minute_per_key: number
  /** Concurrent runs and node tests. */
  max_running: number
  /** Recipients of mails of workflows, approvals and invitations; see `db/mails/allowance.ts`. */
  mail_recipients_per_day: number
  mail_recipients_per_minute: number
  /** Bytes that the organization stores (`db/model/storage/tables.ts`). */
  storage_bytes: number
  /** Bytes of the inputs, outputs and results of one run together, with those of all items of its loops. */
  run_bytes: number
  /** The longest retention of logs and of runs, in days. */
  retention_days: number
  /** Bytes of all files. */
  file_bytes: number
  /** Bytes of one file. */
  largest_file: number
  /** The longest `timeout` of a node that calls other services, in seconds: so long a call that hangs holds its slot. */
  max_call_seconds: number
  /** Queued runs: further ones are refused, or skipped if an event triggers them. */
  max_queued: number
  /** Runs, and events that trigger workflows, that descend from one run or event within a day. */
  max_descendants: number
  /** Lists of records by a filter: each is compared with each record that changes. */
  filter_lists: number
}

const UNLIMITED = Number.POSITIVE_INFINITY
const MEBIBYTE = 1024 * 1024

export const PLAN_LIMITS: Record<Plan, PlanLimits> = {
  free: {
    incoming_webhooks: 3,
    incoming_per_month: 500,
    incoming_per_minute: 60,
    outgoing_webhooks: 5,
    outgoing_per_month: 1_000,
    requests_per_minute: 240,
    requests_per_minute_per_key: 120,
    max_running: 1_000,
    mail_recipients_per_day: 200,
    mail_recipients_per_minute: 20,
    storage_bytes: 512 * MEBIBYTE,
    run_bytes: 32 * MEBIBYTE,
    retention_days: 90,
    file_bytes: 100 * MEBIBYTE,
    largest_file: 10 * MEBIBYTE,
    max_call_seconds: 300,
    max_queued: 5_000,
    max_descendants: 5_000,
    filter_lists: 10,
  },
  professional: {
    incoming_webhooks: 10,
    incoming_per_month: 5_000,
    incoming_per_minute: 120,
    outgoing_webhooks: 25,
    outgoing_per_month: 10_000,
    requests_per_minute: 1_200,
    requests_per_minute_per_key: 600,
    max_running: 1_000,
    mail_recipients_per_day: 5_000,
    mail_recipients_per_minute: 200,
    storage_bytes: 20_480 * MEBIBYTE,
    run_bytes: 128 * MEBIBYTE,
    retention_days: 730,
    file_bytes: 10_240 * MEBIBYTE,
    largest_file: 50 * MEBIBYTE,
    max_call_seconds: 3_600,
    max_queued: 20_000,
    max_descendants: 20_000,
    filter_lists: 50,
  },
  enterprise: {
    incoming_webhooks: UNLIMITED,
    incoming_per_month: UNLIMITED,
    incoming_per_minute: UNLIMITED,
    outgoing_webhooks: UNLIMITED,
    outgoing_per_month: UNLIMITED,
    requests_per_minute: 12_000,
    requests_per_minute_per_key: 6_000,
    max_running: 1_000,
    mail_recipients_per_day: 100_000,
    mail_recipients_per_minute: 2_000,
    storage_bytes: UNLIMITED,
    run_bytes: 512 * MEBIBYTE,
    retention_days: 3_650,
    file_bytes: UNLIMITED,
    largest_file: FILES.bytes,
    max_call_seconds: 86_400,
    max_queued: 100_000,
    max_descendants: 100_000,
    filter_lists: 200,
  },
}

/**
 * An organization's plan, and the limits that override those of the plan (`organizations.limits`, by the same names).
 */
export interface Subscription {
  plan: Plan
  limits: Partial<PlanLimits>
}

export const limitOf = ({ plan, limits }: Subscription, name: keyof PlanLimits): number =>
  limits[name] ?? PLAN_LIMITS[plan][name]

/** SQL: a limit of the organization `o`; null without one. */
export const planLimitSql = (name: keyof PlanLimits): string => {
  const ofPlan = (plan: Plan) => {
    const limit = PLAN_LIMITS[plan][name]
    return `when '${plan}' then cast(${Number.isFinite(limit) ? limit : 'null'} as bigint)`
  }
  return `coalesce(cast(o.limits ->> '${name}' as bigint), case o.plan ${PLANS.map(ofPlan).join(' ')} end)`
}

/** SQL: a finite limit of the organization `o`, by its plan and its own limits. */
export const limitSql = (name: keyof PlanLimits): string => {
  const byPlan = PLANS.map((plan) => `when '${plan}' then ${PLAN_LIMITS[plan][name]}`).join(' ')
  return `coalesce((o.limits ->> '${name}')::integer, case o.plan ${byPlan} end)`
}

/** The organization's subscription as of now. */
export const getSubscription = (tx: Tenant): Promise<Subscription> =>
  tx.trx('organizations').where({ id: tx.organizationId }).first<Subscription>('plan', 'limits')

/**
 * Locks and returns the organization's subscription. The lock keeps concurrent creations from exceeding a limit
 * together.
 */
export async function lockSubscription(tx: Tenant): Promise<Subscription & { name: string }> {
  return tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .forNoKeyUpdate()
    .first<Subscription & { name: string }>('name', 'plan', 'limits')
}

/** Throws plan_limit if the organization has as many webhooks as its plan allows. */
export function requireFreeWebhook(
  subscription: Subscription,
  direction: 'incoming' | 'outgoing',
  used: number,
): void {
  const allowed = limitOf(subscription, `${direction}_webhooks`)
  if (used >= allowed)
    throw new AppError('plan_limit', `the plan allows ${allowed} ${direction} webhooks, and all are in use`, {
      hint: 'delete one, or change the plan',
    })
}
