import { validate as isUuid } from 'uuid'
import type { PlanChangeRule } from '../model/access/plan-change-rule.ts'
import { AppError, notFound } from '../model/errors.ts'
import { releaseWithinQuota } from '../outgoing/moves/holds.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { fileBytes } from '../stored-files/files.ts'
import { recordChange } from './audit-log.ts'
import { limitOf, lockSubscription, type Plan, type Subscription } from './plans.ts'

/** Throws insufficient_scope unless the operator lets the owner change the plan. */
export async function requirePlanChanges(tx: Tenant, rule: PlanChangeRule): Promise<void> {
  if (rule === 'open') return
  const { is_operators } = await tx
    .trx('organizations')
    .where({ id: tx.organizationId })
    .first<{ is_operators: boolean }>('is_operators')
  if (rule === 'closed' || !is_operators)
    throw new AppError('insufficient_scope', 'only the operator of the service can change this plan', {
      hint: 'operators run `npm run set-plan`, or set PLAN_CHANGES',
    })
}

/**
 * Changes the plan. Every process reads the plan and its limits for each request, claim and delivery, so the new limits
 * apply to the next one. Work that waited for a higher limit continues: held deliveries are queued in this transaction
 * (above 10,000 the sweep queues the others), and the relay looks for runs at once.
 *
 * A plan whose limits the existing objects exceed is refused, and the error lists every exceeded limit: the owner must
 * choose which webhooks and files to delete. If they stayed, a month on a higher plan would buy them for ever. Monthly
 * usage does not count: requests are then refused and deliveries held, as when a quota is used up. `evenIfExceeded` is
 * for the operator: existing objects stay, and no further ones can be created.
 *
 * @returns the previous plan. Throws plan_limit.
 */
export async function changePlan(
  tx: Tenant,
  plan: Plan,
  { evenIfExceeded = false }: { evenIfExceeded?: boolean } = {},
): Promise<Plan> {
  const { name, ...before } = await lockSubscription(tx)
  if (before.plan === plan) return plan
  const exceeded = evenIfExceeded ? [] : await exceededBy(tx, { ...before, plan })
  if (exceeded.length > 0)
    throw new AppError(
      'plan_limit',
      `the plan ${plan} does not cover what the organization has: ${exceeded.join('; ')}`,
      { param: 'plan', hint: 'delete webhooks or files, or lower rate limits, then change the plan' },
    )
  await tx.trx('organizations').where({ id: tx.organizationId }).update({ plan })
  await recordChange(tx, 'organization.plan_changed', {
    id: tx.organizationId,
    name,
    details: { from: before.plan, to: plan },
  })
  await releaseWithinQuota(tx.trx, tx.organizationId)
  tx.wake('agx_deliveries')
  tx.wake('agx_runs')
  return before.plan
}

/** An organization by its id, or by the email of an owner who owns no other. Throws not_found, ambiguous_name. */
export async function organizationNamed(system: System, text: string): Promise<{ id: string; name: string }> {
  const rows: { id: string; name: string }[] = await system('organizations as o')
    .modify((query) =>
      isUuid(text)
        ? query.where('o.id', text)
        : query
            .join('memberships as m', 'm.organization_id', 'o.id')
            .join('users as u', 'u.id', 'm.user_id')
            .where('m.role', 'owner')
            .whereRaw('lower(u.email) = lower(?)', [text]),
    )
    .select('o.id', 'o.name')
  if (rows.length === 0) throw notFound('organization')
  if (rows.length > 1)
    throw new AppError(
      'ambiguous_name',
      `${text} owns ${rows.length} organizations: give the id\n${rows.map(({ id, name }) => `${id} ${name}`).join('\n')}`,
    )
  return rows[0]!
}

const MAX_NAMED = 5

/** The limits of a plan that the organization exceeds, as text. */
async function exceededBy(tx: Tenant, subscription: Subscription): Promise<string[]> {
  const allowed = (name: Parameters<typeof limitOf>[1]) => limitOf(subscription, name)
  const { rows } = await tx.trx.raw<{
    rows: [{ incoming: number; outgoing: number; too_fast: string[] }]
  }>(
    `select
       (select count(*) from incoming_webhooks w where w.organization_id = o.id)::integer as incoming,
       (select count(*) from outgoing_webhooks w where w.organization_id = o.id)::integer as outgoing,
       array(select w.name from incoming_webhooks w
         where w.organization_id = o.id and w.rate_limit + w.burst > cast(? as double precision) order by w.id) as too_fast
     from organizations o where o.id = ?`,
    [allowed('incoming_per_minute'), tx.organizationId],
  )
  const { incoming, outgoing, too_fast } = rows[0]
  const found: string[] = []
  if (incoming > allowed('incoming_webhooks'))
    found.push(`${incoming} incoming webhooks (at most ${allowed('incoming_webhooks')})`)
  if (outgoing > allowed('outgoing_webhooks'))
    found.push(`${outgoing} outgoing webhooks (at most ${allowed('outgoing_webhooks')})`)
  const bytes = await fileBytes(tx)
  if (bytes > allowed('file_bytes')) found.push(`${bytes} bytes of files (at most ${allowed('file_bytes')})`)
  if (too_fast.length > 0) {
    const names = too_fast.slice(0, MAX_NAMED).map((name) => `"${name}"`)
    const more = too_fast.length > MAX_NAMED ? ` and ${too_fast.length - MAX_NAMED} more` : ''
    found.push(
      `rate limit and burst of the incoming webhooks ${names.join(', ')}${more} (together at most ${allowed('incoming_per_minute')} per minute)`,
    )
  }
  return found
}
