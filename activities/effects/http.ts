import type { Http } from '../../workflows/effects/http.ts'
import type { HttpClient } from '../http/client.ts'
import { traceparent } from '../http/traceparent.ts'
import type { EffectHost } from './define.ts'

/** Calls with the cancellation and the timeout of the attempt, and with the trace of the run unless the author names one. */
export const httpOf = (call: HttpClient['call'], { signal, timeoutMs, traceId }: EffectHost): Http => ({
  request({ headers = {}, ...request }) {
    const named = Object.keys(headers).some((name) => name.toLowerCase() === 'traceparent')
    const traced = named || !traceId ? headers : { ...headers, traceparent: traceparent(traceId) }
    return call({ ...request, headers: traced }, { signal, timeoutMs })
  },
})
