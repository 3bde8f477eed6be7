/**
 * Records histories of deliveries for `test/workflows/replay.test.ts`, as `record-histories.ts` does those of runs:
 * `node --import tsx test/support/record-delivery-histories.ts`. Stored histories are never overwritten.
 */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { insertEvents } from '../../db/events/outbox.ts'
import { changed } from '../../workflows/bundle/deliver.ts'
import { startApi } from './api.ts'
import { createTestDatabase, testActor } from './database.ts'
import { firstHistory, saveHistory } from './histories.ts'
import { type Behaviour, startReceiver } from './receiver.ts'
import { type App, signIn } from './session.ts'
import { startWorker } from './worker.ts'

const folder = new URL('../fixtures/histories/', import.meta.url)

interface Case {
  answers: Behaviour[]
  retry_schedule: number[]
  /** Runs while the delivery waits for its next attempt. */
  meanwhile?: (app: App, delivery: { id: string; webhook_id: string }) => Promise<unknown>
}
const cases: Record<string, Case> = {
  'deliver-at-once': { answers: [204], retry_schedule: [] },
  'deliver-retried': { answers: [500, 503, 204], retry_schedule: [1, 1] },
  'deliver-failed': { answers: [500, 500], retry_schedule: [1] },
  'deliver-retried-by-hand': {
    answers: [500, 204],
    retry_schedule: [3_600],
    meanwhile: (app, { id }) => app('POST', `/deliveries/${id}/retry`),
  },
  'deliver-cancelled': {
    answers: [500],
    retry_schedule: [3_600],
    meanwhile: (app, { id }) => app('POST', `/deliveries/${id}/cancel`),
  },
  'deliver-held': {
    answers: [500],
    retry_schedule: [3_600],
    meanwhile: (app, { webhook_id }) => app('POST', `/webhooks/outgoing/${webhook_id}/deactivate`),
  },
  'deliver-at-once-of-version-1': { answers: [204], retry_schedule: [] },
  'deliver-signalled-during-an-attempt': {
    answers: [500, 204],
    retry_schedule: [1],
    async meanwhile(_, { id }) {
      receiver.answerAfter(3_000)
      while ((await db.system('deliveries').where({ id }).first('attempts')).attempts < 2) await sleep(20)
      await worker.client.workflow.getHandle(`delivery:${id}`).signal(changed)
    },
  },
  // Needs a server with limit.historyCount.suggestContinueAsNew=50.
  'deliver-continued-as-new': {
    answers: [500, 204],
    retry_schedule: [20],
    async meanwhile(_, { id }) {
      const handle = worker.client.workflow.getHandle(`delivery:${id}`)
      const first = (await handle.describe()).runId
      while ((await handle.describe()).runId === first) {
        await handle.signal(changed)
        await sleep(300)
      }
    },
  },
}

const db = await createTestDatabase()
const api = await startApi(db, { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' })
const app = await signIn(db, api)
const receiver = await startReceiver()
const worker = await startWorker(db, { secretsKey: api.secretsKey })
for (const [name, { answers, retry_schedule, meanwhile }] of Object.entries(cases)) {
  const file = new URL(`${name}.binpb`, folder)
  if (existsSync(file)) continue
  receiver.behave(...answers)
  const event = `test.${name.replaceAll('-', '_')}`
  const { body } = await app('POST', '/webhooks/outgoing', {
    name,
    url: receiver.url,
    events: [event],
    retry_schedule,
  })
  await db.tenant(api.organizationId, testActor, (tx) =>
    insertEvents(tx, [{ name: event, data: { id: name } }]),
  )
  const delivery = await delivered(body.id, meanwhile !== undefined)
  await meanwhile?.(app, delivery)
  const handle = worker.client.workflow.getHandle(`delivery:${delivery.id}`)
  await handle.result()
  saveHistory(file, await firstHistory(worker.client, handle.workflowId))
}
await worker.stop()
receiver.close()
await api.close()
await db.drop()

/** The webhook's delivery, once it waits for its next attempt, or has ended. */
async function delivered(webhookId: string, waits: boolean) {
  for (;;) {
    const row = await db.system('deliveries').where({ webhook_id: webhookId }).first()
    if (row && (waits ? row.next_attempt_at : row.ended_at)) return row
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
