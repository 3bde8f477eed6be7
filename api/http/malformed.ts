import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '../../db/errors.ts'
import { errorBody } from './errors.ts'

/** What Node's parser refuses before a request exists, by its code. */
const REFUSALS: Record<string, [status: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not come to its end in time'],
}

/** A listener of `clientError`: what is not even HTTP is answered in the one error shape too, and hung up on. */
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

/** A listener of `checkExpectation`: an Expect header other than 100-continue, which is met without us. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const id = randomUUID()
  const error = new AppError('invalid_request', 'the Expect header asks for what is not done here', {
    hint: 'send 100-continue, or none',
  })
  const body = JSON.stringify(errorBody(error, id))
  response.writeHead(417, {
    'X-Request-Id': id,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    // The body that may follow is not read.
    Connection: 'close',
  })
  response.end(body)
}
