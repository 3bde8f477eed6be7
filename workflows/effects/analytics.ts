import type { AnalyticsQuery, AnalyticsResult } from '../shared/analytics.ts'
import type { Port } from './define.ts'

/** Metrics of the organization's data. */
export interface Analytics {
  /** Throws NodeError with all problems of the query, and if the answer takes too long. */
  query(query: AnalyticsQuery): Promise<AnalyticsResult>
}

export const analytics: Port<Analytics> = {
  classes: ['read'],
  scoped: true,
  words: {
    query: {
      call: ({ metric, group_by, interval }) =>
        [
          `querying ${metric}`,
          ...(group_by.length > 0 ? [`by ${group_by.join(' and ')}`] : []),
          ...(interval ? [`per ${interval}`] : []),
        ].join(' '),
      result: ({ rows }, { metric }) => `${metric} has ${rows.length} rows`,
    },
  },
}
