import type { RateTable } from '../shared/exchange-rates.ts'
import type { Port } from './define.ts'

/** Exchange rates from the configured source. */
export interface Rates {
  /** Throws NodeError `rates_unavailable` if the source cannot be reached, or its answer has no rates. */
  latest(): Promise<RateTable>
  /** The table that the service ships, which is older. */
  shipped(): Promise<RateTable>
}

export const rates: Port<Rates> = {
  classes: ['external'],
  scoped: false,
  words: {
    latest: {
      call: () => 'reading the exchange rates',
      result: ({ rates, date }) => `read ${Object.keys(rates).length} rates of ${date}`,
    },
    shipped: {
      call: () => 'taking the exchange rates that the service ships',
      result: ({ date }) => `took the rates of ${date}`,
    },
  },
}
