import type { Rates } from '../../workflows/effects/rates.ts'
import { SHIPPED_RATES } from '../../workflows/shared/shipped-rates.ts'
import type { RateSource } from '../rates/source.ts'
import type { EffectHost } from './define.ts'

/** Reads with the cancellation of the attempt. Throws NodeError in a process without a source. */
export const ratesOf = (source: RateSource | undefined, { signal, timeoutMs, reach }: EffectHost): Rates => ({
  async latest() {
    if (!source) throw new Error('this process has no source of rates')
    reach('rates')
    return source.latest({ signal, timeoutMs })
  },
  shipped: async () => SHIPPED_RATES,
})
