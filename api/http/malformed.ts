import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '../../db/model/errors.ts'
import { errorBody } from './errors.ts'

/** Throws invalid_request for HTTP/1.1 without Host, which the protocol requires. */
export function requireHost({ httpVersion, headers }: IncomingMessage): void {
  if (headers.host === undefined && httpVersion === '1.1')
    throw new AppError('invalid_request', 'the request has no Host header')
}

/** Status line and message for the error codes of Node's HTTP parser. */
const REFUSALS: Record<string, [status: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request was not complete within the time limit'],
}

/** A listener of `clientError`: responds to invalid HTTP with the error envelope and closes the connection. */
export function answerMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, message] = REFUSALS[error.code ?? ''] ?? ['400 Bad Request', 'the request is not valid HTTP']
  const id = randomUUID()
  const body = JSON.stringify(errorBody(new AppError('invalid_request', message), id))
  socket.end(
    [
      `HTTP/1.1 ${status}`,
      `X-Request-Id: ${id}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
}

/** A listener of `checkExpectation`: refuses Expect headers other than 100-continue, which Node handles. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const id = randomUUID()
  const error = new AppError('invalid_request', 'the expectation of the Expect header is not supported', {
    hint: 'send 100-continue, or omit the header',
  })
  const body = JSON.stringify(errorBody(error, id))
  response.writeHead(417, {
    'X-Request-Id': id,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    // A body that follows is not read.
    Connection: 'close',
  })
  response.end(body)
}
