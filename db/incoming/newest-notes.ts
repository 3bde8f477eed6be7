import type { TargetKind } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { firstIdAt } from '../retention/purge.ts'

/** How long after a note an equal one is taken for a repetition. */
const WINDOW = "interval '5 minutes'"

/** The newest note of each record, if it was written just now. Only links to notes with ids of these minutes are read. */
export async function newestNotes(
  tx: Tenant,
  kind: TargetKind,
  recordIds: string[],
): Promise<Map<string, string>> {
  if (recordIds.length === 0) return new Map()
  const { rows } = await tx.trx.raw<{ rows: { id: string; body: string }[] }>(
    `select r.id, n.body from unnest(:recordIds::uuid[]) r (id) cross join lateral (
       select n.body from (
         select a_id as id from associations where organization_id = :organizationId and b_id = r.id
           and b_entity = :kind and a_entity = 'notes' and a_id > ${firstIdAt(`now() - ${WINDOW}`)}
         union all
         select b_id from associations where organization_id = :organizationId and a_id = r.id
           and a_entity = :kind and b_entity = 'notes' and b_id > ${firstIdAt(`now() - ${WINDOW}`)}) l
       join notes n on n.organization_id = :organizationId and n.id = l.id
       order by n.id desc limit 1) n`,
    { organizationId: tx.organizationId, kind, recordIds } as never,
  )
  return new Map(rows.map(({ id, body }) => [id, body]))
}
