import { queryAnalytics } from '../../db/analytics/analytics.ts'
import { AppError } from '../../db/errors.ts'
import type { Analytics } from '../../workflows/effects/analytics.ts'
import { NodeError } from '../../workflows/nodes/define.ts'
import { type EffectHost, transactionOf } from './define.ts'

/** Metrics of the organization, computed in the transaction of the segment. */
export function analyticsOf(host: EffectHost): Analytics {
  const tx = transactionOf(host)
  return {
    async query(query) {
      try {
        return await queryAnalytics(tx, query)
      } catch (error) {
        if (error instanceof AppError)
          throw new NodeError(error.type, messageOf(error), { retryable: error.type === 'unavailable' })
        throw error
      }
    },
  }
}

/** All problems in one text, with what to write instead. */
function messageOf({ message, details: { issues = [], hint } }: AppError): string {
  if (issues.length === 0) return hint ? `${message}: ${hint}` : message
  return issues.map(({ msg, hint }) => (hint ? `${msg}: ${hint}` : msg)).join('; ')
}
