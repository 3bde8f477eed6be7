import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { parse, stringify } from 'uuid'
import { MASK } from '../../workflows/shared/secret-names.ts'
import { allKeys, type SecretsKey } from './seal.ts'

/** The ids in the link of an approval: those of its wait. */
export interface ApprovalKey {
  organization_id: string
  run_id: string
  id: string
}

/** The caller to whom the API showed the link: a decision by it is attributed to this caller. */
export interface ShownTo {
  type: 'key' | 'user'
  id: string
}

const IDS = 48
/** The type and the id of `ShownTo`. */
const SHOWN = 17
const TYPES = ['key', 'user'] as const
const MAC = 32

/**
 * The token of an approval's link: its ids and their MAC with a key derived from SECRETS_KEY. The token is not stored;
 * the row says until when the link works. Whoever has the link may decide.
 */
export function approvalToken(
  secretsKey: SecretsKey,
  { organization_id, run_id, id }: ApprovalKey,
  shownTo?: ShownTo,
): string {
  const shown = shownTo ? [Buffer.of(TYPES.indexOf(shownTo.type)), parse(shownTo.id)] : []
  const ids = Buffer.concat([...[organization_id, run_id, id].map((one) => parse(one)), ...shown])
  return Buffer.concat([ids, sign(allKeys(secretsKey)[0], ids)]).toString('base64url')
}

/** The links of `text` that name no caller, masked: those who read them here could decide as themselves. */
export const hideApprovalLinks = (text: string): string =>
  text.includes('/approvals/') ? text.replace(UNATTRIBUTED, `/approvals/${MASK}`) : text

const UNATTRIBUTED = /\/approvals\/[\w-]{107}(?![\w-])/g

/** The approval of a token; undefined for a token that the service did not issue. */
export function readApprovalToken(
  secretsKey: SecretsKey,
  token: string,
): (ApprovalKey & { shown_to?: ShownTo }) | undefined {
  const bytes = Buffer.from(token, 'base64url')
  // The decoder skips invalid characters; the comparison makes the token of an approval unique.
  const isShown = bytes.length === IDS + SHOWN + MAC
  if ((!isShown && bytes.length !== IDS + MAC) || bytes.toString('base64url') !== token) return undefined
  const ids = bytes.subarray(0, -MAC)
  const mac = bytes.subarray(-MAC)
  if (!allKeys(secretsKey).some((key) => timingSafeEqual(mac, sign(key, ids)))) return undefined
  const [organization_id, run_id, id] = [0, 16, 32].map((at) => stringify(ids, at)) as [
    string,
    string,
    string,
  ]
  const approval = { organization_id, run_id, id }
  return isShown
    ? { ...approval, shown_to: { type: TYPES[ids[IDS]!]!, id: stringify(ids, IDS + 1) } }
    : approval
}

/** The link of an approval; without PUBLIC_URL only its path. */
export const approvalLink = (
  secretsKey: SecretsKey,
  publicUrl: string | undefined,
  approval: ApprovalKey,
  shownTo?: ShownTo,
): string =>
  `${(publicUrl ?? '').replace(/\/$/, '')}/approvals/${approvalToken(secretsKey, approval, shownTo)}`

function sign(secretsKey: Buffer, ids: Buffer): Buffer {
  const key = Buffer.from(hkdfSync('sha256', secretsKey, '', 'agx approval link', 32))
  return createHmac('sha256', key).update(ids).digest()
}
