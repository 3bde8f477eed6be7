import { NodeError } from '../../workflows/language/node-error.ts'
import type { RateTable } from '../../workflows/shared/exchange-rates.ts'
import { SHIPPED_RATES } from '../../workflows/shared/shipped-rates.ts'
import type { HttpClient } from '../http/client.ts'
import { parseRates } from './parse.ts'

/** How long rates are kept. A source changes once a day. */
const KEPT_MS = 3_600_000

/** In place of a URL: the rates that the service ships. */
export const SHIPPED = 'shipped'

/** The exchange rates at a URL, kept for an hour; or those that the service ships. */
export class RateSource {
  private readonly call: HttpClient['call']
  private readonly url: string
  private last: { at: number; table: RateTable } | undefined

  constructor(call: HttpClient['call'], url: string) {
    this.call = call
    this.url = url
  }

  /** Throws NodeError `rates_unavailable`, rather than return expired rates. */
  async latest(options: Parameters<HttpClient['call']>[1]): Promise<RateTable> {
    if (this.url === SHIPPED) return SHIPPED_RATES
    if (this.last && Date.now() - this.last.at < KEPT_MS) return this.last.table
    const { status, body } = await this.call({ method: 'GET', url: this.url }, options).catch(
      (error: unknown) => {
        if (!(error instanceof NodeError)) throw error
        throw unavailable(error.message, error.retryable)
      },
    )
    if (status !== 200) throw unavailable(`it answered ${status}`)
    const table = parseRates(body)
    if (!table)
      throw unavailable('it answered neither the XML of the European Central Bank nor JSON with rates')
    this.last = { at: Date.now(), table }
    return table
  }
}

const unavailable = (why: string, retryable = true) =>
  new NodeError('rates_unavailable', `The source of exchange rates cannot be read: ${why}.`, { retryable })
