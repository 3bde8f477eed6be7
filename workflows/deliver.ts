import { proxyActivities, proxyLocalActivities, setCurrentDetails } from '@temporalio/workflow'

/** In stored histories: it may grow, and what is there keeps its meaning. */
export interface DeliverInput {
  organization_id: string
  delivery_id: string
  /** The endpoint, for the timeline of the Temporal UI. */
  summary: string
}

export interface DeliverAnswer {
  status: 'succeeded' | 'failed' | 'waiting'
  error?: string
  retry_in_ms?: number
}

interface Deliveries {
  deliverOnce(input: DeliverInput): Promise<DeliverAnswer>
  deliverUntilDone(input: DeliverInput): Promise<DeliverAnswer>
}

/**
 * One event on its way to one endpoint. The first attempt is a local activity, so that what succeeds at once costs
 * one workflow task; after it one activity retries itself, at the times that it says.
 */
export async function deliver(input: DeliverInput): Promise<{ status: DeliverAnswer['status'] }> {
  const first = await proxyLocalActivities<Deliveries>({
    startToCloseTimeout: '25 seconds',
    retry: { maximumAttempts: 1 },
    summary: input.summary,
  })
    .deliverOnce(input)
    // Whatever it was (a lost database, a time-out), the activity finds out where the delivery stands.
    .catch((): DeliverAnswer => ({ status: 'waiting' }))
  if (first.status !== 'waiting') return end(first)
  setCurrentDetails(`The first attempt failed: ${first.error ?? 'no answer'}. It is being retried.`)
  return end(
    await proxyActivities<Deliveries>({
      startToCloseTimeout: '45 seconds',
      retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
      summary: input.summary,
    }).deliverUntilDone(input),
  )
}

function end({ status, error }: DeliverAnswer) {
  setCurrentDetails(error ? `${status}: ${error}` : status)
  return { status }
}
