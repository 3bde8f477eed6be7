import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import type { ActivityInterceptorsFactory } from '@temporalio/worker'
import { NO_SLOT } from '../activities/slots/node-turns.ts'
import type { Metrics } from '../db/process/metrics.ts'

/**
 * Counts every activity; also the attempts of deliveries, from the results of their activities.
 */
export function countActivities({ activities, deliveryAttempts }: Metrics): ActivityInterceptorsFactory {
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
            if (delivers) deliveryAttempts.inc({ outcome: outcomeOf(result) })
            return result
          } catch (error) {
            // Also if the worker stops, or a change of a delivery interrupts its activity.
            const cancelled = error instanceof CancelledFailure
            const waits = error instanceof ApplicationFailure && error.type === NO_SLOT
            count(cancelled ? 'cancelled' : waits ? 'no_slot' : 'failed')
            if (delivers && !cancelled) deliveryAttempts.inc({ outcome: 'retried' })
            throw error
          }
        },
      },
    }
  }
}

function outcomeOf(answer: unknown): string {
  const { status } = answer as { status: string }
  return status === 'waiting' ? 'retried' : status
}
