import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { parse, stringify } from 'uuid'
import { allKeys, type SecretsKey } from '../process/seal.ts'
import type { WaitKey } from './waits.ts'

/** An approval, as its link names it. */
export type ApprovalKey = Pick<WaitKey, 'organization_id' | 'run_id' | 'id'>

const IDS = 48
const MAC = 32

/**
 * The token of an approval's link: its ids and their signature by a key of its own, derived from SECRETS_KEY. Nothing of
 * it is stored: the row says until when the link works. Whoever has the link may decide.
 */
export function approvalToken(secretsKey: SecretsKey, { organization_id, run_id, id }: ApprovalKey): string {
  const ids = Buffer.concat([organization_id, run_id, id].map((one) => Buffer.from(parse(one))))
  return Buffer.concat([ids, sign(allKeys(secretsKey)[0], ids)]).toString('base64url')
}

/** The approval that a token names; undefined if it is not ours. */
export function readApprovalToken(secretsKey: SecretsKey, token: string): ApprovalKey | undefined {
  const bytes = Buffer.from(token, 'base64url')
  // Decoding skips what is not base64url: one approval has one link.
  if (bytes.length !== IDS + MAC || bytes.toString('base64url') !== token) return undefined
  const ids = bytes.subarray(0, IDS)
  const mac = bytes.subarray(IDS)
  if (!allKeys(secretsKey).some((key) => timingSafeEqual(mac, sign(key, ids)))) return undefined
  const [organization_id, run_id, id] = [0, 16, 32].map((at) => stringify(ids, at)) as [
    string,
    string,
    string,
  ]
  return { organization_id, run_id, id }
}

/** The link; without PUBLIC_URL only its path. */
export const approvalLink = (
  secretsKey: SecretsKey,
  publicUrl: string | undefined,
  approval: ApprovalKey,
): string => `${(publicUrl ?? '').replace(/\/$/, '')}/approvals/${approvalToken(secretsKey, approval)}`

function sign(secretsKey: Buffer, ids: Buffer): Buffer {
  const key = Buffer.from(hkdfSync('sha256', secretsKey, '', 'agx approval link', 32))
  return createHmac('sha256', key).update(ids).digest()
}
