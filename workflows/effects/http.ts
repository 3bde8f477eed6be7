import { listed, type Port } from './define.ts'

/** HTTP requests through the egress guard. */
export interface Http {
  /** Throws NodeError if the request is refused or gets no complete response; any status is a response. */
  request(request: HttpRequest): Promise<HttpResponse>
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
  headers: Record<string, string>
  /** Parsed if the content type is JSON, otherwise text; at most 1 MiB. */
  body: unknown
  duration_ms: number
}

/** The only headers that a redirect sends to another origin: any other may be a credential. In lower case. */
export const HEADERS_TO_OTHER_ORIGINS = [
  ...['accept', 'accept-language', 'user-agent', 'idempotency-key'],
  ...['content-type', 'content-encoding', 'content-language'],
]

/** The limits of a call. */
export const HTTP_LIMITS = {
  redirects: 5,
} as const

export const http: Port<Http> = {
  classes: ['external'],
  scoped: false,
  words: {
    request: {
      call: ({ method, url, headers = {}, query = {}, body }) =>
        [
          `${method} ${withoutQuery(url)}`,
          ...listed('query', [...namesInQuery(url), ...Object.keys(query)]),
          ...listed('headers', Object.keys(headers)),
          ...(body === undefined ? [] : [`a body of ${bytesOf(body)} bytes`]),
        ].join(', '),
      result({ status, headers, body }) {
        const type = headers['content-type'] ?? 'no content type'
        return `answered ${status}, ${type}, ${bytesOf(body)} bytes`
      },
    },
  },
}

const withoutQuery = (url: string) => url.split(/[?#]/)[0]!

const namesInQuery = (url: string) =>
  URL.canParse(url) ? [...new Set(new URL(url).searchParams.keys())] : []

const bytesOf = (value: unknown) =>
  Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value ?? ''))
