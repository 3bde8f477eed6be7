import type { Client } from '@temporalio/client'
import { failDeliveryStart, markDeliveriesStarted, type Release } from '../../db/outgoing/moves/queue.ts'
import { type ClaimedDelivery, claimDeliveries, shortenLeases } from '../../db/outgoing/queue.ts'
import { changed, DELIVER_ENGINE, type deliver } from '../../workflows/bundle/deliver.ts'
import { summaryOf } from '../../workflows/bundle/summary.ts'
import type { NamespaceAttributes } from '../namespace-attributes.ts'
import { MAX_IN_FLIGHT, type Queue } from '../relay.ts'
import { searchAttributes } from '../search-attributes.ts'
import { StartPace } from '../start-pace.ts'
import { type StartWorkflow, workflowStarter } from './start-workflow.ts'
import { unlessGone } from './unless-gone.ts'

/** Each release of a held delivery starts a new workflow, because a workflow id is used once. */
export const deliveryWorkflowId = ({ id, releases }: Pick<Release, 'id' | 'releases'>) =>
  releases === 0 ? `delivery:${id}` : `delivery:${id}:${releases}`

/**
 * Deliveries of events to endpoints, and their retries that found no free slot. `taskQueue` serves only deliveries: slow
 * receivers do not delay runs.
 */
export function deliveriesQueue({
  relayId,
  taskQueue,
  attributes,
}: {
  relayId: string
  taskQueue: string
  attributes: NamespaceAttributes
}): Queue<ClaimedDelivery> {
  const startWorkflow = workflowStarter(taskQueue, attributes)
  const pace = new StartPace(MAX_IN_FLIGHT)
  return {
    name: 'deliveries',
    channel: 'agx_deliveries',
    get atOnce() {
      return pace.atOnce
    },
    beat: async () => pace.adjust(),
    claim: (system, limit) => claimDeliveries(system, relayId, limit),
    start: (client, row) =>
      row.retry
        ? unlessGone(client.workflow.getHandle(deliveryWorkflowId(row)).signal(changed))
        : pace.measure(startDelivery(startWorkflow, client, row)),
    started: markDeliveriesStarted,
    failed: shortenLeases,
    refused: (db, row, reason) => failDeliveryStart(db.system, row, reason),
  }
}

function startDelivery(startWorkflow: StartWorkflow, client: Client, row: ClaimedDelivery): Promise<boolean> {
  const { organization_id, id, event_id } = row
  const summary = summaryOf(`${row.event_name} to ${row.webhook_name}`)
  return startWorkflow<typeof deliver>(client, {
    workflow: 'deliver',
    workflowId: deliveryWorkflowId(row),
    organizationId: organization_id,
    summary,
    memo: { delivery_id: id, event_id },
    attributes: [{ key: searchAttributes.endpoint, value: row.webhook_id }],
    // Longer than a first attempt, which is made twice if its task times out.
    taskTimeout: '30 seconds',
    args: [
      {
        organization_id,
        delivery_id: id,
        summary,
        release: row.releases,
        failing: row.failing,
        engine: DELIVER_ENGINE,
      },
    ],
  })
}
