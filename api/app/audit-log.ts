import { z } from 'zod'
import { AUDIT_ACTIONS, type AuditEntry, listAuditLog } from '../../db/access/audit-log.ts'
import { ACTOR_TYPES } from '../../db/model/actor.ts'
import { listEnvelope, offsetOf, pageControls, period, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const auditEntry = z
  .object({
    object: z.literal('audit_entry'),
    id: z.uuid(),
    action: z.enum(AUDIT_ACTIONS).meta({ description: '`<type of the target>.<action>`.' }),
    actor: z
      .object({
        type: z.enum(ACTOR_TYPES),
        id: z.uuid().nullable(),
        name: z.string().nullable(),
      })
      .meta({ id: 'AuditActor', description: 'The author of the change, with the name at that time.' }),
    target: z.object({ id: z.string(), name: z.string() }).meta({ id: 'AuditTarget' }),
    details: z.record(z.string(), z.unknown()).meta({
      description: 'Further details, such as `fields`, the names of the changed fields. Never a secret.',
    }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'AuditEntry' })

export const auditLogRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/audit-log',
    role: 'admin',
    id: 'listAuditLog',
    tag: 'Audit log',
    summary: 'List the audit log',
    description: 'Every change of access and configuration, newest first. Entries are kept for a year.',
    query: z.strictObject({
      ...pageControls,
      ...period,
      action: z.enum(AUDIT_ACTIONS).optional().describe('Entries with this action.'),
      actor_id: z.uuid().optional().describe('Entries of this user or key.'),
      target_id: z.string().max(200).optional().describe('Entries about this object.'),
    }),
    response: { status: 200, schema: listEnvelope(auditEntry, 'AuditEntry') },
    async handler({ query, tenant }) {
      const { limit, cursor, offset: _, ...filter } = query
      const page = { limit, cursor, offset: offsetOf(query) }
      const found = await tenant((tx) => listAuditLog(tx, filter, page))
      return presentList({ ...found, data: found.data.map(present) })
    },
  }),
]

function present(entry: AuditEntry) {
  const { id, action, details, created_at } = entry
  return {
    object: 'audit_entry',
    id,
    action,
    actor: { type: entry.actor_type, id: entry.actor_id, name: entry.actor_name },
    target: { id: entry.target_id, name: entry.target_name },
    details,
    created_at,
  }
}
