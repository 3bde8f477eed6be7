import { queryAnalytics } from '../../db/analytics/analytics.ts'
import type { Analytics } from '../../workflows/effects/analytics.ts'
import { type EffectHost, transactionOf } from './define.ts'

/** Metrics of the organization, computed in the transaction of the segment. */
export function analyticsOf(host: EffectHost): Analytics {
  const tx = transactionOf(host)
  return { query: (query) => queryAnalytics(tx, query) }
}
