import { conflict } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type Heirs, handOver, heldBy, requireHeirs } from '../records/bulk/hand-over.ts'
import { recordChange } from './audit-log.ts'
import {
  lockMember,
  membersAmong,
  memberships,
  requireMayManage,
  requireOtherOwner,
  withdrawLinks,
} from './members.ts'

/**
 * Removes a member, and hands over what the member holds to `heirs` in turn, or to nobody if there are none. The member's
 * sessions in the organization end at once; the user and the keys that the user created remain. Throws not_found,
 * insufficient_scope; conflict for the last owner, and without `heirs` if records name the member; `validation_error` for
 * heirs that are no other members. @returns the bulk jobs that hand over.
 */
export async function removeMember(tx: Tenant, userId: string, heirs?: Heirs): Promise<string[]> {
  const member = await lockMember(tx, userId)
  await requireMayManage(tx, member.role)
  await requireOtherOwner(tx, member)
  requireHeirs(userId, heirs ?? [], await membersAmong(tx, heirs ?? []))
  const held = await heldBy(tx, userId)
  if (held.length > 0 && !heirs)
    throw conflict(
      `the member is named by ${held.map(({ entity, field }) => `${field} of ${entity}`).join(', ')}`,
      {
        param: 'hand_over',
        hint: 'give them to others with hand_over=<user ids>, or clear them with hand_over=nobody',
      },
    )
  // Before the deletion, because the name of a user without membership is not visible.
  await recordChange(tx, 'member.removed', {
    id: userId,
    name: member.name,
    details: { role: member.role },
  })
  await withdrawLinks(tx, userId, { invitations: true })
  await tx.trx('sessions').where({ organization_id: tx.organizationId, user_id: userId }).delete()
  await memberships(tx).where({ user_id: userId }).delete()
  return handOver(tx, userId, held, heirs ?? [])
}
