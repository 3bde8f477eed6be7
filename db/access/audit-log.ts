import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import type { Page } from '../model/lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The audit log: changes of the access to an organization or of its configuration, and of the version of runs, with
 * their actors. The function of db/ that makes a change writes its entry in the same transaction, so that every caller is
 * recorded. The application's role can neither change nor delete entries.
 */

/** `<type of the target>.<action>`. */
export const AUDIT_ACTIONS = [
  'session.created',
  'session.switched',
  'session.ended',
  'member.role_changed',
  'member.removed',
  'member.password_changed',
  'invitation.created',
  'invitation.withdrawn',
  'invitation.accepted',
  'password_reset.requested',
  'password_reset.created',
  'organization.created',
  'organization.updated',
  'organization.plan_changed',
  'organization.pools_changed',
  'organization.exchange_rates_changed',
  'key.created',
  'key.updated',
  'key.rotated',
  'key.revoked',
  'grant.created',
  'grant.revoked',
  'secret.stored',
  'secret.deleted',
  'mail_suppression.added',
  'mail_suppression.removed',
  'incoming_webhook.created',
  'incoming_webhook.updated',
  'incoming_webhook.secret_rotated',
  'incoming_webhook.deleted',
  'outgoing_webhook.created',
  'outgoing_webhook.updated',
  'outgoing_webhook.activated',
  'outgoing_webhook.deactivated',
  'outgoing_webhook.secret_rotated',
  'outgoing_webhook.deleted',
  'custom_field.created',
  'custom_field.updated',
  'custom_field.deleted',
  'record.revealed',
  'pipeline.created',
  'pipeline.updated',
  'pipeline.deleted',
  'bulk_job.created',
  'contact.erased',
  'view.created',
  'view.updated',
  'view.deleted',
  'list.created',
  'list.updated',
  'list.deleted',
  'report.created',
  'report.updated',
  'report.deleted',
  'workflow.created',
  'workflow.updated',
  'workflow.deleted',
  'workflow.activated',
  'workflow.deactivated',
  'workflow.schedule_paused',
  'workflow.schedule_resumed',
  'workflow.backfilled',
  'run.migrated',
] as const
export type AuditAction = (typeof AUDIT_ACTIONS)[number]

/** A tenant transaction, or one of the system role for an organization. */
export type Audited = Pick<Tenant, 'trx' | 'organizationId' | 'actor'>

export interface Change {
  /** The target: its id, or its name if it has no id. */
  id: string
  /** The target's name at that time, for readers. */
  name: string
  /** Further details, such as the names of changed fields. Never a secret. */
  details?: Record<string, unknown>
}

/** Records a change in its transaction. */
export async function recordChange(tx: Audited, action: AuditAction, change: Change): Promise<void> {
  const { type, id } = tx.actor
  await tx.trx.raw(
    `insert into audit_log (organization_id, id, action, actor_type, actor_id, actor_name,
       target_id, target_name, details)
     values (:organization_id, :entry, :action, :type, :actor,
       case :type when 'user' then (select name from users where id = :actor)
         when 'key' then (select name from api_keys where organization_id = :organization_id and id = :actor) end,
       :target, :name, :details)`,
    {
      organization_id: tx.organizationId,
      entry: uuidv7(),
      action,
      type,
      actor: id,
      target: change.id,
      name: change.name,
      details: JSON.stringify(change.details ?? {}),
    },
  )
}

/** Records the change of a row that has an id and a name. @returns the row. */
export async function recorded<T extends { id: string; name: string }>(
  tx: Audited,
  action: AuditAction,
  row: T,
  details: Record<string, unknown> = {},
): Promise<T> {
  await recordChange(tx, action, { id: row.id, name: row.name, details })
  return row
}

/** The names of the fields in a patch, for `details`. */
export const fieldsOf = (patch: object): { fields: string[] } => ({
  fields: Object.entries(patch)
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name),
})

export interface AuditEntry {
  id: string
  action: AuditAction
  actor_type: Actor['type']
  actor_id: string | null
  actor_name: string | null
  target_id: string
  target_name: string
  details: Record<string, unknown>
  created_at: Date
}

export interface AuditFilter {
  action?: AuditAction | undefined
  actor_id?: string | undefined
  target_id?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** Entries, newest first. Throws `invalid_request` for a cursor of another list. */
export function listAuditLog(
  tx: Tenant,
  { from, to, ...equal }: AuditFilter,
  page: IdPage,
): Promise<Page<AuditEntry>> {
  const rows = tx
    .trx('audit_log')
    .where({ organization_id: tx.organizationId })
    .select('id', 'action', 'actor_type', 'actor_id', 'actor_name', 'target_id', 'target_name')
    .select('details', 'created_at')
  for (const [name, value] of Object.entries(equal)) if (value !== undefined) rows.where(name, value)
  if (from) rows.where('created_at', '>=', from)
  if (to) rows.where('created_at', '<=', to)
  return pageById(tx, rows, page, { of: ['audit log', equal, from, to] })
}
