import { createServer, type Server } from 'node:http'
import type { ApiConfig } from '../config.ts'
import { limitByAddress } from './connections.ts'
import { answerExpectation, answerMalformed } from './malformed.ts'

/** Time limit for request headers. Headers are small: a slower client holds a connection without need. */
const HEADERS_MS = 10_000
/**
 * Interval of checking the time limits. With Node's default of 30 s, slow clients would keep their connections longer.
 */
const CHECK_MS = 1_000

type ServerConfig = Pick<
  ApiConfig,
  | 'REQUEST_TIMEOUT'
  | 'KEEP_ALIVE_TIMEOUT'
  | 'MAX_CONNECTIONS'
  | 'MAX_CONNECTIONS_PER_ADDRESS'
  | 'TRUSTED_PROXIES'
>

/**
 * The HTTP server with its limits: time for the headers and for the whole request (408, then the connection is closed),
 * and connections, in all and of one address. Connections above the limit are closed at once, those of an address above
 * its own get 503.
 */
export function createHttpServer({
  REQUEST_TIMEOUT,
  KEEP_ALIVE_TIMEOUT,
  MAX_CONNECTIONS,
  MAX_CONNECTIONS_PER_ADDRESS,
  TRUSTED_PROXIES,
}: ServerConfig): Server {
  const requestTimeout = REQUEST_TIMEOUT * 1_000
  const server = createServer({
    requestTimeout,
    headersTimeout: Math.min(HEADERS_MS, requestTimeout),
    // The limit of the headers begins with the first byte of each request, so it may be shorter.
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT * 1_000,
    connectionsCheckingInterval: CHECK_MS,
    // Node would respond with an empty body; `serve` refuses such a request with a reason.
    requireHostHeader: false,
  })
  server.maxConnections = MAX_CONNECTIONS
  if (TRUSTED_PROXIES === 0) limitByAddress(server, MAX_CONNECTIONS_PER_ADDRESS)
  return server.on('clientError', answerMalformed).on('checkExpectation', answerExpectation)
}
