import type { Http } from '../../workflows/effects/http.ts'
import type { HttpClient } from '../http/client.ts'
import type { EffectHost } from './define.ts'

/** Calls with the cancellation and the timeout of the attempt. */
export const httpOf = (call: HttpClient['call'], { signal, timeoutMs }: EffectHost): Http => ({
  request: (request) => call(request, { signal, timeoutMs }),
})
