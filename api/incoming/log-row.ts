import type { IncomingHttpHeaders } from 'node:http'
import type { NewLog } from '../../db/incoming/logs.ts'
import { textOfBody } from '../../db/model/incoming/parse-body.ts'
import type { Verification } from '../../db/model/incoming/types.ts'
import { firstCharacters } from '../../db/model/records/values.ts'
import type { Redactor } from '../../workflows/shared/redactor.ts'
import { isSecretName, MASK } from '../../workflows/shared/secret-names.ts'

/** Stored characters of a payload, by whether the sender is verified. */
const MAX_PAYLOAD = 65_536
const MAX_UNVERIFIED = 2_048
/** Stored headers, and the characters of a name and a value: anybody can send 16 KiB of them. */
const MAX_HEADERS = 50
const MAX_NAME = 100
const MAX_VALUE = 500

type Described = Pick<
  NewLog,
  'headers' | 'content_type' | 'payload' | 'payload_truncated' | 'payload_rest' | 'payload_size' | 'verified'
>

/** The columns of a log row that describe the request, not its outcome. */
export function describeRequest(request: {
  headers: IncomingHttpHeaders
  bytes: Buffer | undefined
  /** The body without its compression. */
  content: Buffer | undefined
  verification: Verification
  verified: boolean
  mask: Redactor
  /** Whether the request may be replayed, which needs all of it. */
  keepsRest: boolean
}): Described {
  const { bytes, content = bytes, verified, mask, keepsRest } = request
  const type = request.headers['content-type']
  const whole = content && textOfBody(content, type ?? '').replaceAll('\0', '\uFFFD')
  const text = whole === undefined ? null : mask.text(whole)
  const kept = text && firstCharacters(text, verified ? MAX_PAYLOAD : MAX_UNVERIFIED)
  return {
    headers: maskHeaders(request.headers, request.verification, mask),
    content_type: type === undefined ? null : firstCharacters(mask.text(type), MAX_VALUE),
    payload: kept,
    payload_truncated: kept !== text,
    payload_rest: keepsRest && verified && kept !== text ? text!.slice(kept!.length) : null,
    verified,
    payload_size: bytes?.length ?? declaredSize(request.headers['content-length']),
  }
}

/** The size that the sender states, where the body was not read. */
function declaredSize(header = '0'): number {
  const size = Number(header)
  return Number.isSafeInteger(size) && size >= 0 ? size : 0
}

function maskHeaders(
  headers: IncomingHttpHeaders,
  verification: Verification,
  mask: Redactor,
): Record<string, string> {
  const own = verification.type === 'hmac' ? verification.header.toLowerCase() : undefined
  return Object.fromEntries(
    Object.entries(headers)
      .slice(0, MAX_HEADERS)
      .map(([name, value]) => [
        name.slice(0, MAX_NAME),
        name === own || isSecretName(name) ? MASK : firstCharacters(mask.text(String(value)), MAX_VALUE),
      ]),
  )
}
