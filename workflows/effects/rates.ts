import type { Port } from './define.ts'

/** Exchange rates from the configured source. */
export interface Rates {
  /** Throws NodeError if the source cannot be reached, or its answer has no rates. */
  latest(): Promise<RateTable>
}

export interface RateTable {
  /** The units of each currency for one of `base`, as decimals. */
  rates: Record<string, string>
  base: string
  /** The day of the rates. */
  date: string
}

export const rates: Port<Rates> = {
  classes: ['external'],
  scoped: false,
  words: {
    latest: {
      call: () => 'reading the exchange rates',
      result: ({ rates, date }) => `read ${Object.keys(rates).length} rates of ${date}`,
    },
  },
}
