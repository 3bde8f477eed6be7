import {
  ActivityCancellationType,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { requireVersion } from './require-version.ts'

/** Stored in Temporal histories: members may be added; existing members keep their meaning. */
export interface DeliverInput {
  organization_id: string
  delivery_id: string
  /** The endpoint, for the timeline of the Temporal UI. */
  summary: string
  /** The number of releases from hold so far; this workflow serves the last one. */
  release?: number
  /** The endpoint has been failing: it may be slow, so no workflow task waits for its answer. */
  failing?: boolean
  /** The version of this workflow's code; absent in the oldest histories. From 1, it continues as new. */
  engine?: number
}

/** The version of this code that new deliveries need: a worker with an older one refuses them. */
export const DELIVER_ENGINE = 1

export interface DeliverAnswer {
  /** `held`: this workflow ends; a release of the delivery starts another one. */
  status: 'succeeded' | 'failed' | 'cancelled' | 'held' | 'waiting'
  error?: string
  retry_in_ms?: number
}

interface Deliveries {
  deliverOnce(input: DeliverInput): Promise<DeliverAnswer>
  deliverUntilDone(input: DeliverInput): Promise<DeliverAnswer>
}

/** The row has changed (cancelled, held or made due at once): read it again. Without payload, so that signals merge. */
export const changed = defineSignal('changed')

/**
 * Delivers one event to one endpoint. The first attempt is a local activity, so that a delivery that succeeds at once
 * costs one workflow task. Then one activity makes the retries and sets the delay of each.
 */
export async function deliver(input: DeliverInput): Promise<{ status: DeliverAnswer['status'] }> {
  requireVersion(input.engine ?? 0, DELIVER_ENGINE)
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
      // Signalled mid-attempt: the cancelled activity may fail, which is not final.
      if (changes === seen) throw isCancelled() ? new CancelledFailure('cancelled by an operator') : error
    }
    // The row has the state, so the new workflow makes no first attempt.
    if ((input.engine ?? 0) >= 1 && workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof deliver>({ ...input, failing: true })
  }
}

/** An attempt that fails after the cancellation ends with its own error: the workflow is cancelled all the same. */
const isCancelled = () => CancellationScope.current().consideredCancelled

/** Any failure (lost database, timeout) counts as `waiting`: the next activity reads the status of the delivery. */
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
    // A request in flight may have reached the endpoint: its answer counts.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: input.summary,
  })
  return deliverUntilDone(input)
}

function end({ status, error }: DeliverAnswer) {
  setCurrentDetails(error ? `${status}: ${error}` : status)
  return { status }
}
