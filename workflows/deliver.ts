import {
  ActivityCancellationType,
  CancellationScope,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow'

/** In stored histories: it may grow, and what is there keeps its meaning. */
export interface DeliverInput {
  organization_id: string
  delivery_id: string
  /** The endpoint, for the timeline of the Temporal UI. */
  summary: string
  /** How often the delivery had been released from being held; this workflow serves that release. */
  release?: number
  /** The endpoint has been failing: it may take its time, which a workflow task should not wait for. */
  failing?: boolean
}

export interface DeliverAnswer {
  /** `held`: this workflow ends, and another one goes on when the delivery is released. */
  status: 'succeeded' | 'failed' | 'cancelled' | 'held' | 'waiting'
  error?: string
  retry_in_ms?: number
}

interface Deliveries {
  deliverOnce(input: DeliverInput): Promise<DeliverAnswer>
  deliverUntilDone(input: DeliverInput): Promise<DeliverAnswer>
}

/** Someone changed the row (cancelled or held it, made it due at once): look at it again. */
export const changed = defineSignal('changed')

/**
 * One event on its way to one endpoint. The first attempt is a local activity, so that what succeeds at once costs
 * one workflow task; after it one activity retries itself, at the times that it says.
 */
export async function deliver(input: DeliverInput): Promise<{ status: DeliverAnswer['status'] }> {
  let changes = 0
  let sending: CancellationScope | undefined
  setHandler(changed, () => {
    changes++
    sending?.cancel()
  })
  if (!input.failing) {
    const first = await once(input)
    if (first.status !== 'waiting') return end(first)
    setCurrentDetails(`The first attempt failed: ${first.error ?? 'no answer'}. It is being retried.`)
  }
  for (;;) {
    const seen = changes
    sending = new CancellationScope()
    try {
      return end(await sending.run(() => untilDone(input)))
    } catch (error) {
      // Told while it was at work, the activity ends with what it found, be that a failure.
      if (changes === seen) throw error
    }
  }
}

/** Whatever goes wrong (a lost database, a time-out), the activity after it finds out where the delivery stands. */
function once(input: DeliverInput): Promise<DeliverAnswer> {
  const { deliverOnce } = proxyLocalActivities<Deliveries>({
    startToCloseTimeout: '25 seconds',
    retry: { maximumAttempts: 1 },
    summary: input.summary,
  })
  return deliverOnce(input).catch((error) => {
    if (isCancellation(error)) throw error
    return { status: 'waiting' }
  })
}

function untilDone(input: DeliverInput): Promise<DeliverAnswer> {
  const { deliverUntilDone } = proxyActivities<Deliveries>({
    startToCloseTimeout: '45 seconds',
    heartbeatTimeout: '10 seconds',
    retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
    // An attempt that was under way may have arrived: its answer counts.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: input.summary,
  })
  return deliverUntilDone(input)
}

function end({ status, error }: DeliverAnswer) {
  setCurrentDetails(error ? `${status}: ${error}` : status)
  return { status }
}
