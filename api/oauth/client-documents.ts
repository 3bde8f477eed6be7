import { LRUCache } from 'lru-cache'
import type { OAuthClient } from '../../db/access/oauth-clients.ts'
import { AppError } from '../../db/model/errors.ts'
import type { FetchFile } from '../../db/process/fetch-file.ts'
import { parseJson } from '../http/body.ts'
import { readMetadata } from './client-metadata.ts'
import { OAuthError } from './errors.ts'

const MAX_BYTES = 16 * 1024
const TIMEOUT_MS = 5_000
const MAX_URL = 1_000
/** Documents kept, and for how long. */
const MAX_KEPT = 1_000
const KEPT_MS = 10 * 60_000

/** Whether a client id is the URL of a metadata document. */
export const isDocumentUrl = (clientId: string): boolean => clientId.startsWith('https://')

/**
 * Clients whose id is the https URL of a document that describes them (client id metadata documents), so that they need
 * no registration, and their host is known to be theirs. Fetched from public addresses only, like every URL that somebody
 * else chooses. Each process keeps its own.
 */
export class ClientDocuments {
  private readonly fetchFile: FetchFile
  private readonly kept = new LRUCache<string, OAuthClient>({ max: MAX_KEPT, ttl: KEPT_MS })

  constructor(fetchFile: FetchFile) {
    this.fetchFile = fetchFile
  }

  /** The client of a document, if this process has it. */
  known(clientId: string): OAuthClient | undefined {
    return this.kept.get(clientId)
  }

  /** Fetches the document of a client. Throws `invalid_request` with the reason why it cannot be used. */
  async fetch(clientId: string, signal: AbortSignal): Promise<OAuthClient> {
    const flaw = flawOf(clientId)
    if (flaw) throw refused(flaw)
    // A redirect would have strangers choose what is asked, and the document is not that of this address.
    const options = { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, signal, redirects: 0 }
    const { bytes } = await this.fetchFile(clientId, options).catch((error: unknown) => {
      throw error instanceof AppError ? refused(error.message) : error
    })
    const client = clientIn(clientId, bytes)
    this.kept.set(clientId, client)
    return client
  }
}

function flawOf(clientId: string): string | undefined {
  if (clientId.length > MAX_URL || !URL.canParse(clientId)) return 'it is not a URL'
  const { href, pathname, hash, username, password } = new URL(clientId)
  if (href !== clientId) return `it must be written as ${href}`
  if (pathname === '/') return 'it must have a path'
  return hash || username || password ? 'it must have no fragment, user name or password' : undefined
}

function clientIn(clientId: string, bytes: Buffer): OAuthClient {
  try {
    const document = parseJson(bytes)
    const { auth, ...client } = readMetadata(document, new URL(clientId).host)
    if ((document as { client_id?: unknown }).client_id !== clientId)
      throw refused('its client_id is not its own address')
    if (auth !== undefined && auth !== 'none')
      throw refused(`it asks for ${auth.slice(0, 50)}, but clients have no secrets here`)
    return { id: clientId, ...client }
  } catch (error) {
    if (error instanceof OAuthError) throw refused(error.message)
    throw error
  }
}

const refused = (reason: string) =>
  new AppError('invalid_request', `the document of the client cannot be used: ${reason}`, {
    param: 'client_id',
  })
