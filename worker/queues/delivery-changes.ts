import { type ClaimedChange, deliveryChanges } from '../../db/outgoing/queue.ts'
import { changed } from '../../workflows/bundle/deliver.ts'
import type { Queue } from '../relay.ts'
import { deliveryWorkflowId } from './deliveries.ts'
import { unlessGone } from './unless-gone.ts'

/** Deliveries that were cancelled, held or made due while their workflow runs; the workflow must be signalled. */
export const deliveryChangesQueue: Queue<ClaimedChange> = {
  name: 'delivery changes',
  channel: 'agx_delivery_changes',
  claim: deliveryChanges.claim,
  async start(client, row) {
    // The workflow may have read the row and ended.
    await unlessGone(client.workflow.getHandle(deliveryWorkflowId(row)).signal(changed))
  },
  started: deliveryChanges.release,
}
