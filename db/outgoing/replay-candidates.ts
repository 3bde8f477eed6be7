import { notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { firstIdAt } from '../retention/purge.ts'
import { subscribes } from './match.ts'
import { selectByCondition } from './when.ts'

/** The events that a replay sends. */

/**
 * The selection of a replay. `failed`: events whose last delivery to the endpoint failed. `missed`: events that the
 * endpoint selects now but has no delivery of, because it did not exist or did not select them.
 */
export const REPLAY_INCLUDES = ['failed', 'missed'] as const
export type ReplayInclude = (typeof REPLAY_INCLUDES)[number]

/** `since` is inclusive, `until` exclusive. */
export interface Period {
  include: ReplayInclude[]
  since: Date
  until: Date
}

export interface Candidate {
  event_id: string
  subject_id: string | null
  generation: number
}

/** Maximum number of events of a replay. */
export const MAX_REPLAY = 100_000
/** Number of events that are read for a page; few of them may be candidates. */
const READ = 500
/** Maximum difference between the clock of a process, which creates the ids of events, and that of the database. */
const CLOCKS = `interval '1 minute'`

/** SQL: the events `e` of the period, in order after `:position`. */
const EVENTS = `
  select e.organization_id, e.id, e.name, e.subject_id from events e
  where e.organization_id = :organizationId and e.id >= ${firstIdAt(`:since::timestamptz - ${CLOCKS}`)}
    and e.id < ${firstIdAt(`:until::timestamptz + ${CLOCKS}`)}
    and e.created_at >= :since and e.created_at < :until and e.matched_at is not null`

/** SQL: whether the event `e`, whose last delivery to the endpoint `w` is `d`, is a candidate. */
const WANTED = `(case when d.status is null
  then :missed and ${subscribes('w', 'e')}
    -- an example event of a test
    and not exists (select from deliveries t
      where t.organization_id = e.organization_id and t.event_id = e.id and t.test)
  else :failed and d.status = 'failed' and not d.test end)`

const LAST_DELIVERY = `
  join outgoing_webhooks w on w.organization_id = e.organization_id and w.id = :webhookId
  left join lateral (
    select d.status, d.generation, d.test from deliveries d
    where d.organization_id = e.organization_id and d.webhook_id = w.id and d.event_id = e.id
    order by d.generation desc limit 1) d on true`

const keysOf = (tx: Tenant, webhookId: string, { include, since, until }: Period) => ({
  organizationId: tx.organizationId,
  webhookId,
  since,
  until,
  failed: include.includes('failed'),
  missed: include.includes('missed'),
})

/** The number of candidates, up to MAX_REPLAY + 1, without the condition of the endpoint. Throws not_found. */
export async function countCandidates(tx: Tenant, webhookId: string, period: Period): Promise<number> {
  await conditionOf(tx, webhookId)
  const { rows } = await tx.trx.raw<{ rows: { count: number }[] }>(
    `select count(*)::integer as count from (
       select from (${EVENTS}) e ${LAST_DELIVERY} where ${WANTED} limit ${MAX_REPLAY + 1}) c`,
    keysOf(tx, webhookId, period),
  )
  return rows[0]!.count
}

/**
 * The candidates of the next page after `position`.
 * @returns the candidates, the number of those that the condition of the endpoint excludes, and the new position;
 * undefined at the end.
 */
export async function readCandidates(
  tx: Tenant,
  webhookId: string,
  period: Period,
  position: string | null,
): Promise<{ candidates: Candidate[]; skipped: number; position: string | undefined }> {
  const when = await conditionOf(tx, webhookId)
  const { rows } = await tx.trx.raw<{ rows: (Candidate & { wanted: boolean })[] }>(
    `with page as materialized (${EVENTS} and (cast(:position as uuid) is null or e.id > :position)
       order by e.id limit ${READ})
     select e.id as event_id, e.subject_id, coalesce(d.generation + 1, 0) as generation, ${WANTED} as wanted
     from page e ${LAST_DELIVERY} order by e.id`,
    { ...keysOf(tx, webhookId, period), position } as never,
  )
  const wanted = rows.filter((row) => row.wanted)
  const { selected, since } = await selectByCondition(
    tx.trx,
    wanted.map(({ event_id, subject_id, generation }) => ({
      event_id,
      subject_id,
      generation,
      when,
      organization_id: tx.organizationId,
      webhook_id: webhookId,
      active: true,
    })),
  )
  const read = since === undefined ? rows : rows.filter(({ event_id }) => event_id < since)
  const isLast = since === undefined && rows.length < READ
  return {
    candidates: selected,
    skipped: read.filter((row) => row.wanted).length - selected.length,
    position: isLast ? undefined : read.at(-1)!.event_id,
  }
}

/** The condition of the endpoint. Throws not_found. */
async function conditionOf(tx: Tenant, webhookId: string): Promise<string | null> {
  const webhook = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id: webhookId })
    .first<{ when: string | null } | undefined>('when')
  if (!webhook) throw notFound('webhook')
  return webhook.when
}
