import { CancelledFailure } from '@temporalio/common'
import type { ActivityInterceptorsFactory } from '@temporalio/worker'
import type { Metrics } from '../db/process/metrics.ts'

/**
 * Counts every activity; also the ends of runs and the attempts of deliveries, from the results of their activities.
 */
export function countActivities({
  activities,
  runsEnded,
  deliveryAttempts,
}: Metrics): ActivityInterceptorsFactory {
  return ({ info: { activityType: type } }) => {
    const delivers = type === 'deliverOnce' || type === 'deliverUntilDone'
    return {
      inbound: {
        async execute(input, next) {
          const started = performance.now()
          const count = (outcome: string) =>
            activities.observe({ type, outcome }, (performance.now() - started) / 1_000)
          try {
            const result = await next(input)
            count('completed')
            if (type === 'advance') for (const status of endsOf(result)) runsEnded.inc({ status })
            if (delivers) deliveryAttempts.inc({ outcome: outcomeOf(result) })
            return result
          } catch (error) {
            // Also if the worker stops, or a change of a delivery interrupts its activity.
            const cancelled = error instanceof CancelledFailure
            count(cancelled ? 'cancelled' : 'failed')
            if (delivers && !cancelled) deliveryAttempts.inc({ outcome: 'retried' })
            throw error
          }
        },
      },
    }
  }
}

/** The end status in the answer of a segment, if it ended its run. */
function endsOf(answer: unknown): string[] {
  const { commands } = answer as { commands: { type: string; status?: string }[] }
  return commands.flatMap(({ type, status }) => (type === 'end' && status ? [status] : []))
}

function outcomeOf(answer: unknown): string {
  const { status } = answer as { status: string }
  return status === 'waiting' ? 'retried' : status
}
