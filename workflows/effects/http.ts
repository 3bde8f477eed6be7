import type { FileReference } from '../shared/files.ts'
import { listed, type Port } from './define.ts'

/** HTTP requests through the egress guard. */
export interface Http {
  /** Throws NodeError if the request is refused or gets no complete response; any status is a response. */
  request(request: HttpRequest): Promise<HttpResponse>
  /**
   * The same, but keeps the body of a response as a file if `takes` accepts the status. `name`: that of the file,
   * instead of one that the response or the URL gives.
   */
  fetchFile(
    request: HttpRequest,
    options: { takes: (status: number) => boolean; name?: string | undefined },
  ): Promise<HttpResponse & { file: FileReference | null }>
}

export interface HttpRequest {
  method: string
  url: string
  headers?: Record<string, string>
  query?: Record<string, string>
  body?: string | Record<string, unknown> | unknown[]
  /** Follow redirects, each hop checked again. Default true. */
  follow_redirects?: boolean
  /** Send the body also to another origin if a redirect asks for it (307, 308). Default false: the call fails. */
  body_to_other_origins?: boolean
}

export interface HttpResponse {
  status: number
  /** The headers as received: Content-Encoding and Content-Length describe the body before decoding. */
  headers: Record<string, string>
  /** Parsed if the content type is JSON, otherwise text; null if it is binary. */
  body: unknown
  /** Why `body` is not what the content type says; null if it is. */
  body_error: BodyError | null
  /** The size of the decoded body. */
  body_bytes: number
  duration_ms: number
}

export const BODY_ERRORS = {
  invalid_json: 'the content type is JSON, but the body is not: `body` is text',
  unknown_charset: 'the charset is unknown: the body was read as UTF-8',
  malformed_text: 'the body does not fit its charset: some characters were replaced',
  binary_body: 'the body is binary, such as an image: `body` is null',
} as const

export interface BodyError {
  code: keyof typeof BODY_ERRORS
  message: string
}

/** The only headers that a redirect sends to another origin: any other may be a credential. In lower case. */
export const HEADERS_TO_OTHER_ORIGINS = [
  'accept',
  'accept-language',
  'user-agent',
  'idempotency-key',
  'content-type',
  'content-encoding',
  'content-language',
]

/** The limits of a call. */
export const HTTP_LIMITS = {
  /** Bytes of the body of a request. */
  requestBytes: 2 * 1024 * 1024,
  /** Bytes of the body of a response, both as received and decoded. */
  responseBytes: 4 * 1024 * 1024,
  /** Levels of nested lists and objects in a JSON response. */
  depth: 100,
  redirects: 5,
  /** Content encodings of one response; each can multiply the work of decoding. */
  contentEncodings: 5,
} as const

const called = ({ method, url, headers = {}, query = {}, body }: HttpRequest) =>
  [
    `${method} ${withoutQuery(url)}`,
    ...listed('query', [...namesInQuery(url), ...Object.keys(query)]),
    ...listed('headers', Object.keys(headers)),
    ...(body === undefined ? [] : [`a body of ${bytesOf(body)} bytes`]),
  ].join(', ')

function answered({ status, headers, body_bytes }: HttpResponse): string {
  const type = headers['content-type'] ?? 'no content type'
  return `answered ${status}, ${type}, ${body_bytes} bytes`
}

export const http: Port<Http> = {
  classes: ['external'],
  scoped: false,
  words: {
    request: { call: called, result: answered },
    fetchFile: {
      call: (request) => `${called(request)}, for a file`,
      result: (response) =>
        `${answered(response)}${response.file ? `, kept as file ${response.file.file_id}` : ''}`,
    },
  },
}

const withoutQuery = (url: string) => url.split(/[?#]/)[0]!

const namesInQuery = (url: string) =>
  URL.canParse(url) ? [...new Set(new URL(url).searchParams.keys())] : []

const bytesOf = (value: unknown) =>
  Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value ?? ''))
