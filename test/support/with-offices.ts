import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { type HttpServer, startHttpServer } from './http-server.ts'
import type { Call, Servers } from './office.ts'
import { withMails } from './with-mails.ts'

export interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: unknown
}

/** The reply of a language model. */
export const chatReply = (content: string): Reply => ({
  body: { choices: [{ message: { content }, finish_reason: 'stop' }] },
})

/**
 * For a `describe`: an API, a worker, a mail server, and a local server that records the calls of workflows. `replyTo` is
 * its reply. `localUrl` is the address to call instead of the one of a workflow; `local` is that of the local server.
 */
export function withOffices(
  replyTo: (call: Call) => Reply,
  localUrl: (url: string, local: string) => string,
  effects: (local: string) => object = () => ({}),
): () => Servers & { url: string } {
  let server: HttpServer
  let http: HttpClient
  const calls: Call[] = []
  before(async () => {
    server = await startHttpServer((request, response, body) => {
      const call: Call = {
        method: request.method!,
        path: request.url!,
        headers: request.headers,
        body: parsed(body),
        at: Date.now(),
      }
      calls.push(call)
      const { status = 200, headers, body: reply } = replyTo(call)
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(reply === undefined ? '' : JSON.stringify(reply))
    })
    http = createHttp({ allow: ['127.0.0.0/8'] })
  })
  const suite = withMails(
    (mail) => mail,
    () => ({
      ...effects(server.url),
      http: (request, options) => http.call({ ...request, url: localUrl(request.url, server.url) }, options),
    }),
  )
  after(async () => {
    await http?.close()
    await server?.close()
  })
  return () => ({ db: suite.db, api: suite.api, calls, mails: suite.smtp.received, url: server.url })
}

function parsed(body: string): unknown {
  if (body === '') return null
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}
