import type { Database } from '../../db/postgres/connect.ts'
import type { FileStore } from '../../db/stored-files/store.ts'
import type { Http, HttpRequest } from '../../workflows/effects/http.ts'
import { type FileReference, mediaType } from '../../workflows/shared/files.ts'
import { fileContent } from '../http/body-of-file.ts'
import type { HttpClient, ResponseHead } from '../http/client.ts'
import { fileNameOf } from '../http/file-name.ts'
import { checkUrl } from '../http/url.ts'
import type { EffectHost } from './define.ts'
import { transactionsOf } from './transactions.ts'

/**
 * Calls with the cancellation and the timeout of the attempt, and with the trace of the run unless the request has its
 * own. A file that is received becomes one with the result of the node.
 */
export function httpOf(
  call: HttpClient['call'],
  { db, files }: { db: Database | undefined; files: FileStore | undefined },
  host: EffectHost,
): Http {
  const { signal, timeoutMs, traceparent, organizationId, runId, reach } = host
  const traced = ({ headers = {}, ...request }: HttpRequest): HttpRequest => {
    reach(checkUrl(request.url).hostname)
    const named = Object.keys(headers).some((name) => name.toLowerCase() === 'traceparent')
    return {
      ...request,
      headers: named || !traceparent ? headers : { ...headers, traceparent: traceparent() },
    }
  }
  const receive = async (
    name: string | undefined,
    { url, headers }: ResponseHead,
    body: AsyncIterable<Buffer>,
  ): Promise<FileReference> => {
    if (!files) throw new Error('this process receives no files')
    const { 'content-encoding': encoding, 'content-length': length } = headers
    const given = {
      name: name ?? fileNameOf(url, headers),
      content_type: mediaType(headers['content-type']),
      bytes: encoding || length === undefined ? undefined : Number(length),
      run_id: runId,
    }
    const received = await files.receive(
      organizationId,
      transactionsOf(db, host),
      given,
      fileContent(body, encoding),
    )
    host.received(received)
    return { file_id: received.id, name: given.name, content_type: given.content_type, size: received.size }
  }
  return {
    request: (request) => call(traced(request), { signal, timeoutMs }),
    async fetchFile(request, { takes, name }) {
      let file: FileReference | null = null
      const response = await call(traced(request), {
        signal,
        timeoutMs,
        sinkOf: (head) =>
          takes(head.status)
            ? async (body) => {
                file = await receive(name, head, body)
              }
            : undefined,
      })
      // TypeScript does not see the assignment in the sink.
      const kept = file as FileReference | null
      return { ...response, body_bytes: kept?.size ?? response.body_bytes, file: kept }
    },
  }
}
