import { fromWindows1252 } from '../../db/model/csv/encoding.ts'
import { type BodyError, HTTP_LIMITS, type HttpResponse } from '../../workflows/effects/http.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { decodeContent } from './content-encoding.ts'

/**
 * Reads the body of a response by its Content-Encoding and Content-Type: a value if it is JSON, text if it is text,
 * else null. If the body is not what the type says, `body_error` tells why.
 * @param maxBytes the limit of the decoded body. Throws NodeError `response_too_large`, `response_too_deep`,
 * `undecodable_response`.
 */
export async function readBody(
  { headers, body }: { headers: Record<string, string>; body: Buffer },
  maxBytes: number,
): Promise<Pick<HttpResponse, 'body' | 'body_error' | 'body_bytes'>> {
  const bytes = await decodeContent(body, headers['content-encoding'], maxBytes)
  const contentType = headers['content-type'] ?? ''
  const type = contentType.split(';')[0]!.trim().toLowerCase()
  const read = toText(bytes, type, charsetIn(contentType))
  const parsed = read.text !== null && JSON_TYPE.test(type) ? parse(read.text, type) : undefined
  return {
    body: parsed ? parsed.value : read.text,
    body_error: parsed?.error ?? read.error,
    body_bytes: bytes.length,
  }
}

const JSON_TYPE = /[/+.-]json(-rpc)?$/

const TEXT_TYPE = /^text\/|[/+.-](json|xml|html|javascript|ecmascript|yaml|csv|x-www-form-urlencoded)$/

const charsetIn = (contentType: string) => /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1]

/** `text` is null if the bytes are binary. */
function toText(
  bytes: Buffer,
  type: string,
  charset: string | undefined,
): { text: string | null; error: BodyError | null } {
  const known = encodingOf(bytes, charset)
  const encoding = known ?? 'utf-8'
  const exact = decode(bytes, encoding, { fatal: true })
  const text = exact ?? decode(bytes, encoding, { fatal: false }) ?? ''
  const malformed = exact === undefined
  const isBinary = TEXT_TYPE.test(type) ? malformed && hasControls(text) : malformed || hasControls(text)
  if (isBinary) return { text: null, error: binary(bytes, type) }
  if (known === undefined)
    return {
      text,
      error: {
        code: 'unknown_charset',
        message: `the charset ${charset?.slice(0, 50)} is unknown: the body was read as UTF-8`,
      },
    }
  if (malformed)
    return {
      text,
      error: {
        code: 'malformed_text',
        message: `the body is not valid ${encoding}: some characters were replaced`,
      },
    }
  return { text, error: null }
}

/** A byte order mark overrides the charset, as in browsers. Undefined if the charset is unknown. */
function encodingOf(bytes: Buffer, charset: string | undefined): string | undefined {
  const mark = bytes.subarray(0, 3).toString('hex')
  if (mark === 'efbbbf') return 'utf-8'
  if (mark.startsWith('fffe')) return 'utf-16le'
  if (mark.startsWith('feff')) return 'utf-16be'
  try {
    return new TextDecoder(charset).encoding
  } catch {
    return undefined
  }
}

/** Undefined if the bytes are malformed and `fatal` is set. */
function decode(bytes: Buffer, encoding: string, options: { fatal: boolean }): string | undefined {
  // Node's TextDecoder maps its bytes 0x80 to 0x9F to control characters.
  if (encoding === 'windows-1252') return fromWindows1252(bytes).toString()
  try {
    return new TextDecoder(encoding, options).decode(bytes)
  } catch {
    return undefined
  }
}

/** Whether a text has control characters other than those of plain text: tab, line feed, form feed, return, escape. */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 32 && code !== 9 && code !== 10 && code !== 12 && code !== 13 && code !== 27) return true
  }
  return false
}

const binary = (bytes: Buffer, type: string): BodyError => ({
  code: 'binary_body',
  message: `the body is binary (${type.slice(0, 100) || 'no content type'}, ${bytes.length} bytes) and is not kept`,
})

function parse(text: string, type: string): { value: unknown; error: BodyError | null } {
  if (text === '') return { value: '', error: null }
  requireDepth(text, HTTP_LIMITS.depth)
  try {
    return { value: JSON.parse(text), error: null }
  } catch {
    const message = `the content type is ${type.slice(0, 100)}, but the body is not valid JSON`
    return { value: text, error: { code: 'invalid_json', message } }
  }
}

/**
 * Checks the nesting of JSON text before parsing: deep values overflow the stack of JSON.stringify and of PostgreSQL,
 * and 4 MiB of brackets take a second to parse. Takes about 9 ms for each MiB.
 */
function requireDepth(text: string, limit: number): void {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inString) {
      if (code === BACKSLASH) at++
      else if (code === QUOTE) inString = false
    } else if (code === QUOTE) inString = true
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++depth > limit)
        throw new NodeError('response_too_deep', `the response is nested deeper than ${limit} levels`)
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
