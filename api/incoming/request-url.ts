import type { AppDeps } from '../deps.ts'
import { baseUrl } from '../http/base-url.ts'

/** The parts of `/webhooks/incoming/{webhook_id}[/{token}][?token=…]`. */
export interface Target {
  id: string
  token: string | undefined
  query: URLSearchParams
}

const PREFIX = '/webhooks/incoming/'

export function targetOf(path: string, search: string): Target {
  const [id = '', segment, ...others] = path.slice(PREFIX.length).split('/')
  // A path with more segments is none of a webhook.
  if (others.length > 0) return { id: '', token: undefined, query: new URLSearchParams() }
  return { id, token: decoded(segment) ?? tokenIn(search), query: new URLSearchParams(search) }
}

/** Not with URLSearchParams, which reads the `+` of a base64 secret as a space. */
function tokenIn(search: string): string | undefined {
  const found = search.split('&').find((pair) => pair.startsWith('token='))
  return decoded(found?.slice('token='.length))
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text ? decodeURIComponent(text) : undefined
  } catch {
    return text
  }
}

/** The URL that the sender called. */
export const calledUrl = (deps: AppDeps, host: string | undefined, rawUrl: string): string =>
  baseUrl(deps, host) + rawUrl
