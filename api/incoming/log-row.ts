import type { IncomingHttpHeaders } from 'node:http'
import type { NewLog } from '../../db/incoming/logs.ts'
import type { Verification } from '../../db/incoming/types.ts'
import { firstCharacters } from '../../db/records/model/values.ts'
import { isSecretName, MASK } from '../../workflows/secret-names.ts'

/** Stored characters of a payload, by whether the sender is verified. */
const MAX_PAYLOAD = 65_536
const MAX_UNVERIFIED = 2_048

/** The columns of a log row that describe the request, not its outcome. */
export function describeRequest(request: {
  headers: IncomingHttpHeaders
  bytes: Buffer | undefined
  verification: Verification
  verified: boolean
}): Pick<NewLog, 'headers' | 'payload' | 'payload_truncated' | 'payload_size'> {
  const { bytes, verified } = request
  const text = bytes?.toString('utf8').replaceAll('\0', '\uFFFD') ?? null
  const kept = text && firstCharacters(text, verified ? MAX_PAYLOAD : MAX_UNVERIFIED)
  return {
    headers: maskHeaders(request.headers, request.verification),
    payload: kept,
    payload_truncated: kept !== text,
    payload_size: bytes?.length ?? Number(request.headers['content-length'] ?? 0),
  }
}

function maskHeaders(headers: IncomingHttpHeaders, verification: Verification): Record<string, string> {
  const own = verification.type === 'hmac' ? verification.header.toLowerCase() : undefined
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      name === own || isSecretName(name) ? MASK : String(value),
    ]),
  )
}
