import { v7 as uuidv7 } from 'uuid'
import { fieldsOf, recorded } from '../access/audit-log.ts'
import { limitOf, lockSubscription, requireFreeWebhook, type Subscription } from '../access/plans.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { AppError, notFound } from '../model/errors.ts'
import { type TargetEntity, withKind, withTargetEntity } from '../model/incoming/target-entity.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Page } from '../model/lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The values that users set. */
export type WebhookValues = Omit<
  IncomingWebhook,
  | 'id'
  | 'status'
  | 'capturing_until'
  | 'sample_log_id'
  | 'polled_at'
  | 'next_poll_at'
  | 'poll_problem'
  | 'poll_failures'
  | 'created_at'
  | 'updated_at'
> & { source_headers_sealed?: string | null }
type Patch = { [K in keyof WebhookValues]?: WebhookValues[K] | undefined } & {
  status?: IncomingWebhook['status'] | undefined
}

const COLUMNS = [
  'id',
  'name',
  'description',
  'status',
  'sender',
  'verification',
  'ip_whitelist',
  'rate_limit',
  'burst',
  'block',
  'target_entity',
  'also_writes',
  'field_mapping',
  'deduplication',
  'dedupe_window',
  'secret_headers',
  'secret_fields',
  'workflow_id',
  'workflow_inputs',
  'listeners',
  'trigger_headers',
  'trigger_query',
  'response_wait',
  'source',
  'polled_at',
  'next_poll_at',
  'poll_problem',
  'poll_failures',
  'capturing_until',
  'sample_log_id',
  'created_at',
  'updated_at',
] as const

type Row = Omit<IncomingWebhook, 'kind'> & { target_entity: TargetEntity }

/** Creates a webhook with status Active. Throws plan_limit. */
export async function createIncomingWebhook(
  tx: Tenant,
  values: WebhookValues,
  secretSealed: string,
): Promise<IncomingWebhook> {
  const subscription = await lockSubscription(tx)
  requireRate(subscription, values)
  const { rows } = await tx.trx.raw<{ rows: { count: number }[] }>(
    'select count(*) from incoming_webhooks where organization_id = ?',
    [tx.organizationId],
  )
  requireFreeWebhook(subscription, 'incoming', rows[0]!.count)
  const [row] = await tx
    .trx('incoming_webhooks')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      secret_sealed: secretSealed,
      ...toRow(values),
      ...(values.source && { next_poll_at: tx.trx.fn.now() }),
    })
    .returning<Row[]>(COLUMNS)
  if (values.source) tx.wake('agx_incoming_polls')
  return recorded(tx, 'incoming_webhook.created', withKind(row!))
}

/** Newest first. */
export async function listIncomingWebhooks(tx: Tenant, page: IdPage): Promise<Page<IncomingWebhook>> {
  const rows = tx.trx('incoming_webhooks').where({ organization_id: tx.organizationId }).select(COLUMNS)
  const { data, ...others } = await pageById<Row>(tx, rows, page, { of: 'incoming webhooks' })
  return { ...others, data: data.map(withKind) }
}

/** The webhooks that select one of these workflows, also as a listener, newest first. */
export async function webhooksOf(tx: Tenant, workflowIds: readonly string[]): Promise<IncomingWebhook[]> {
  const rows = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId })
    .whereRaw(
      `(workflow_id = any(:ids::uuid[])
        or exists (select from jsonb_array_elements(listeners) l where l ->> 'workflow_id' = any(:ids::text[])))`,
      { ids: workflowIds as string[] } as never,
    )
    .orderBy('id', 'desc')
    .select<Row[]>(COLUMNS)
  return rows.map(withKind)
}

/** Throws not_found. */
export async function getIncomingWebhook(tx: Tenant, id: string): Promise<IncomingWebhook> {
  const row = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .first<Row | undefined>(COLUMNS)
  if (!row) throw notFound('webhook')
  return withKind(row)
}

/** Updates a webhook; effective from its next request. Throws not_found, plan_limit. */
export async function updateIncomingWebhook(tx: Tenant, id: string, patch: Patch): Promise<IncomingWebhook> {
  if (patch.rate_limit !== undefined || patch.burst !== undefined) {
    const { rate_limit, burst } = await getIncomingWebhook(tx, id)
    requireRate(await lockSubscription(tx), {
      rate_limit: patch.rate_limit ?? rate_limit,
      burst: patch.burst ?? burst,
    })
  }
  const [row] = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .update({ ...toRow(patch), ...pollOf(tx, patch), updated_at: tx.trx.fn.now() })
    .returning<Row[]>(COLUMNS)
  if (!row) throw notFound('webhook')
  if (patch.source || patch.status) tx.wake('agx_incoming_polls')
  return recorded(tx, 'incoming_webhook.updated', withKind(row), fieldsOf(withTargetEntity(patch)))
}

/** A source that is set, also to the same value, or activated, is polled at once; another one from its beginning. */
function pollOf({ trx }: Tenant, { source, status }: Patch): object {
  if (source === null) return { source_state: null, next_poll_at: null, poll_problem: null, poll_failures: 0 }
  if (source !== undefined)
    return {
      source_state: trx.raw('case when source = cast(? as jsonb) then source_state end', [
        JSON.stringify(source),
      ]),
      next_poll_at: trx.fn.now(),
      poll_problem: null,
      poll_failures: 0,
    }
  return status === 'Active' ? { next_poll_at: trx.raw('case when source is not null then now() end') } : {}
}

/** Replaces the secret; the old one expires after `overlapHours` (0: immediately). Throws not_found. */
export async function rotateIncomingSecret(
  tx: Tenant,
  id: string,
  secretSealed: string,
  overlapHours: number,
): Promise<IncomingWebhook> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `update incoming_webhooks set
       previous_secret_sealed = case when :hours > 0 then secret_sealed end,
       previous_secret_expires_at = now() + make_interval(hours => :hours),
       secret_sealed = :sealed,
       updated_at = now()
     where organization_id = :organizationId and id = :id returning id`,
    { hours: overlapHours, sealed: secretSealed, organizationId: tx.organizationId, id },
  )
  if (rows.length === 0) throw notFound('webhook')
  return recorded(tx, 'incoming_webhook.secret_rotated', await getIncomingWebhook(tx, id))
}

/** The current secret, sealed. Throws not_found. */
export async function sealedSecret(tx: Tenant, id: string): Promise<string> {
  const row = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .first<{ secret_sealed: string } | undefined>('secret_sealed')
  if (!row) throw notFound('webhook')
  return row.secret_sealed
}

/** Deletes a webhook with its log. Throws not_found. */
export async function deleteIncomingWebhook(tx: Tenant, id: string): Promise<void> {
  const [row] = await tx
    .trx('incoming_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .delete()
    .returning<Pick<IncomingWebhook, 'id' | 'name'>[]>(['id', 'name'])
  if (!row) throw notFound('webhook')
  await recorded(tx, 'incoming_webhook.deleted', row)
}

/** Throws plan_limit if rate limit and burst together exceed the plan's requests per minute. */
function requireRate(
  subscription: Subscription,
  { rate_limit, burst }: Pick<WebhookValues, 'rate_limit' | 'burst'>,
): void {
  const allowed = limitOf(subscription, 'incoming_per_minute')
  if (rate_limit + burst > allowed)
    throw new AppError('plan_limit', `the plan allows ${allowed} requests per minute, including the burst`, {
      param: rate_limit > allowed ? 'rate_limit' : 'burst',
    })
}

/** Serializes jsonb values: the driver would send a JavaScript array as a PostgreSQL array. */
function toRow(values: Patch) {
  const JSON_COLUMNS = [
    'verification',
    'block',
    'field_mapping',
    'deduplication',
    'workflow_inputs',
    'listeners',
    'source',
  ]
  return Object.fromEntries(
    Object.entries(withTargetEntity(values))
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [
        name,
        JSON_COLUMNS.includes(name) && value !== null ? JSON.stringify(value) : value,
      ]),
  )
}
