import type { Http } from '../../workflows/effects/http.ts'
import type { HttpClient } from '../http/client.ts'
import { checkUrl } from '../http/url.ts'
import type { EffectHost } from './define.ts'

/**
 * Calls with the cancellation and the timeout of the attempt, and with the trace of the run unless the request has its
 * own.
 */
export const httpOf = (
  call: HttpClient['call'],
  { signal, timeoutMs, traceparent, reach }: EffectHost,
): Http => ({
  async request({ headers = {}, ...request }) {
    reach(checkUrl(request.url).hostname)
    const named = Object.keys(headers).some((name) => name.toLowerCase() === 'traceparent')
    const traced = named || !traceparent ? headers : { ...headers, traceparent: traceparent() }
    return call({ ...request, headers: traced }, { signal, timeoutMs })
  },
})
