import type { HttpClient } from '../http/client.ts'
import { type EffectFactories, transactionOf } from './define.ts'
import { eventsOf } from './events.ts'
import { httpOf } from './http.ts'
import { keyValuesOf } from './key-values.ts'
import { recordsIn } from './records.ts'
import { runsOf } from './runs.ts'

/** What the process provides to the effects. */
export interface EffectDeps {
  /** Calls URLs through the egress guard. */
  http: HttpClient['call']
}

/** Every effect of `workflows/effects/`, implemented. */
export const createEffects = ({ http }: EffectDeps): EffectFactories => ({
  records: (host) => recordsIn(transactionOf(host), host.once),
  http: (host) => httpOf(http, host),
  events: eventsOf,
  runs: runsOf,
  keyValues: keyValuesOf,
})
