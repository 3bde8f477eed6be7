import { Agent, request } from 'undici'
import { AppError } from '../model/errors.ts'
import { type EgressOptions, EgressRefused, guardedConnector } from './guarded-connector.ts'

/** A file that was fetched. */
export interface FetchedFile {
  /** After redirects. */
  url: string
  /** The media type, without parameters. */
  type: string
  bytes: Buffer
}

/** `redirects`: how many are followed; default: 5. */
export interface FetchOptions {
  maxBytes: number
  timeoutMs: number
  signal: AbortSignal
  redirects?: number
}

/** Fetches a file from a URL. Refuses private addresses that the operator does not allow. Throws `invalid_request`. */
export type FetchFile = (url: string, options: FetchOptions) => Promise<FetchedFile>

const REDIRECTS = 5

export function createFetchFile(options: EgressOptions): FetchFile {
  const dispatcher = new Agent({ connect: guardedConnector({ ...options, timeoutMs: 10_000 }) })
  return async (first, { maxBytes, timeoutMs, signal, redirects: most = REDIRECTS }) => {
    const deadline = AbortSignal.timeout(timeoutMs)
    const either = AbortSignal.any([signal, deadline])
    let url = new URL(first)
    try {
      for (let redirects = 0; ; redirects++) {
        const { statusCode, headers, body } = await request(url, {
          dispatcher,
          signal: either,
          headers: ACCEPT,
        })
        const { location } = headers
        if (statusCode >= 300 && statusCode < 400 && typeof location === 'string') {
          body.on('error', () => {}).destroy()
          if (most === 0) throw refused('it redirects to another address')
          if (redirects === most) throw refused(`it redirects more than ${most} times`)
          url = new URL(location, url)
          if (!/^https?:$/.test(url.protocol)) throw refused('it redirects to another protocol than http')
          continue
        }
        if (statusCode !== 200) throw refused(`the server answered ${statusCode}`)
        const [type = ''] = String(headers['content-type'] ?? '').split(';')
        return { url: url.href, type: type.trim().toLowerCase(), bytes: await readUpTo(body, maxBytes) }
      }
    } catch (error) {
      if (error instanceof AppError || signal.aborted) throw error
      if (deadline.aborted) throw refused(`the server did not send it within ${timeoutMs / 1_000} s`)
      if (error instanceof EgressRefused) throw refused(error.message)
      throw refused((error as { code?: string }).code ?? 'the connection failed')
    }
  }
}

/** Uncompressed, so that the limit of bytes is that of the file. */
const ACCEPT = { accept: '*/*', 'accept-encoding': 'identity' }

async function readUpTo(stream: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop destroys the stream and its connection.
  for await (const chunk of stream) {
    size += chunk.length
    if (size > limit) throw refused(`it has more than ${limit} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const refused = (reason: string) =>
  new AppError('invalid_request', `the URL cannot be fetched: ${reason}`, { param: 'url' })
