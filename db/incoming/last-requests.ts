import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The requests that a reader gets at most. */
const REQUESTS = 100

/** The log entries among which they are looked for: anybody can add refused ones, and a log may be long. */
const ENTRIES = 1_000

/**
 * What the log has of the last requests to a webhook since it was changed, the newest first, without replays. It reads a
 * bounded number of entries, however long the log is.
 * @param wanted SQL: the columns, and which entries tell the reader something.
 */
export async function lastRequests<Row>(
  tx: Tenant,
  { id, updated_at }: Pick<IncomingWebhook, 'id' | 'updated_at'>,
  { columns, where }: { columns: string; where: string },
): Promise<Row[]> {
  const { rows } = await tx.trx.raw<{ rows: Row[] }>(
    `select ${columns} from (
       select * from incoming_logs
       where organization_id = :organizationId and webhook_id = :id order by id desc limit :entries) l
     where replay_of is null and created_at >= :updatedAt and ${where}
     order by l.id desc limit :requests`,
    { organizationId: tx.organizationId, id, updatedAt: updated_at, entries: ENTRIES, requests: REQUESTS },
  )
  return rows
}
