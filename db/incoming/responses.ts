import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { SenderResponse } from '../../workflows/effects/responses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { RunKey } from '../runs/views.ts'

/** Responses: what runs answer to the senders of the requests that started them. */

/**
 * Stores the response of a run, and wakes the request that waits for it. @returns its id; undefined if the run has one.
 */
export async function storeResponse(
  tx: Tenant,
  runId: string,
  { status, headers, content_type, body }: SenderResponse,
): Promise<string | undefined> {
  const id = uuidv7()
  const { rows } = await tx.trx.raw<{ rows: unknown[] }>(
    `insert into incoming_responses (organization_id, run_id, id, status, headers, content_type, body)
     values (?, ?, ?, ?, ?, ?, ?) on conflict (organization_id, run_id) do nothing returning id`,
    [tx.organizationId, runId, id, status, JSON.stringify(headers), content_type, body],
  )
  if (rows.length === 0) return undefined
  tx.wake('agx_run_changed', runId)
  return id
}

/** Whether the run still has this response: a retry is another run. */
export async function hasResponse(tx: Tenant, runId: string, id: string): Promise<boolean> {
  const row = await tx
    .trx('incoming_responses')
    .where({ organization_id: tx.organizationId, run_id: runId, id })
    .first('id')
  return row !== undefined
}

/** What a run has answered so far. */
export interface RunResponse {
  /** Whether no answer can follow. */
  ended: boolean
  /** Whether it ended otherwise than by its nodes: it failed, or was cancelled, terminated or lost. */
  failed: boolean
  response: SenderResponse | null
}

/**
 * The responses of runs of any organization, by the id of the run. One statement without a transaction serves all
 * waiting requests, hence the system role. A run that is gone is absent.
 */
export async function findResponses(system: Knex, runs: RunKey[]): Promise<Map<string, RunResponse>> {
  const { rows } = await system.raw<{ rows: (RunResponse & { id: string })[] }>(
    `select r.id, r.ended_at is not null as ended,
       r.ended_at is not null and r.status not in ('completed', 'skipped') as failed,
       case when p.run_id is not null then jsonb_build_object(
         'status', p.status, 'headers', p.headers, 'content_type', p.content_type, 'body', p.body) end as response
     from unnest(:organizationIds::uuid[], :ids::uuid[]) as wanted (organization_id, id)
     join runs r on r.organization_id = wanted.organization_id and r.id = wanted.id
     left join incoming_responses p on p.organization_id = r.organization_id and p.run_id = r.id`,
    { organizationIds: runs.map((run) => run.organizationId), ids: runs.map((run) => run.id) },
  )
  return new Map(rows.map(({ id, ...found }) => [id, found]))
}
