import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { parse, stringify } from 'uuid'
import { allKeys, type SecretsKey } from './seal.ts'

/** The ids in the link of an approval: those of its wait. */
export interface ApprovalKey {
  organization_id: string
  run_id: string
  id: string
}

const IDS = 48
const MAC = 32

/**
 * The token of an approval's link: its ids and their MAC with a key derived from SECRETS_KEY. The token is not stored;
 * the row says until when the link works. Whoever has the link may decide.
 */
export function approvalToken(secretsKey: SecretsKey, { organization_id, run_id, id }: ApprovalKey): string {
  const ids = Buffer.concat([organization_id, run_id, id].map((one) => Buffer.from(parse(one))))
  return Buffer.concat([ids, sign(allKeys(secretsKey)[0], ids)]).toString('base64url')
}

/** The approval of a token; undefined for a token that the service did not issue. */
export function readApprovalToken(secretsKey: SecretsKey, token: string): ApprovalKey | undefined {
  const bytes = Buffer.from(token, 'base64url')
  // The decoder skips invalid characters; the comparison makes the token of an approval unique.
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

/** The link of an approval; without PUBLIC_URL only its path. */
export const approvalLink = (
  secretsKey: SecretsKey,
  publicUrl: string | undefined,
  approval: ApprovalKey,
): string => `${(publicUrl ?? '').replace(/\/$/, '')}/approvals/${approvalToken(secretsKey, approval)}`

function sign(secretsKey: Buffer, ids: Buffer): Buffer {
  const key = Buffer.from(hkdfSync('sha256', secretsKey, '', 'agx approval link', 32))
  return createHmac('sha256', key).update(ids).digest()
}
