import { randomUUID } from 'node:crypto'
import { DELIVERY_STATUSES } from '../../../db/model/outgoing/statuses.ts'
import {
  beginAttempt,
  endAttempt,
  endDelivery,
  endUnrecordedDelivery,
  requeueDelivery,
} from '../../../db/outgoing/moves/attempts.ts'
import {
  holdDeliveries,
  pauseDelivery,
  releaseDeliveries,
  releaseForQuota,
  resumeDelivery,
} from '../../../db/outgoing/moves/holds.ts'
import { failDeliveryStart, markDeliveriesStarted } from '../../../db/outgoing/moves/queue.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { describeMoves, type Fixture, readTable } from '../../support/moves.ts'

interface DeliveryFixture extends Fixture {
  organization_id: string
  webhook_id: string
  id: string
  releases: number
  set(values: object): Promise<unknown>
  setEndpoint(values: object): Promise<unknown>
  setQuota(perMonth: number): Promise<unknown>
}

describe('the moves of deliveries', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  async function fixture(status: string): Promise<DeliveryFixture> {
    const organization_id = await createOrganization(db)
    const [id, webhook_id, event_id] = [randomUUID(), randomUUID(), randomUUID()]
    const key = { organization_id, id }
    const row = () => db.system('deliveries').where(key)
    const endpoint = { organization_id, id: webhook_id }
    await db.system('outgoing_webhooks').insert({
      ...endpoint,
      name: 'Test',
      url: 'https://example.com/',
      events: ['*'],
      secret_sealed: 'sealed',
    })
    await db
      .system('events')
      .insert({ organization_id, id: event_id, name: 'test.done', data: {}, actor: testActor })
    await db.system('deliveries').insert({
      ...key,
      webhook_id,
      event_id,
      status,
      held_for: status === 'held' ? 'endpoint' : null,
      ended_at: ['succeeded', 'failed', 'cancelled'].includes(status) ? new Date() : null,
    })
    return {
      organization_id,
      webhook_id,
      id,
      releases: 0,
      set: (values) => row().update(values),
      setEndpoint: (values) => db.system('outgoing_webhooks').where(endpoint).update(values),
      setQuota: (outgoing_per_month) =>
        db
          .system('organizations')
          .where({ id: organization_id })
          .update({ limits: JSON.stringify({ outgoing_per_month }) }),
      status: async () => (await row().first('status')).status,
      snapshot: () => row().first(),
      remove: () => db.system('organizations').where({ id: organization_id }).delete(),
    }
  }

  const tenant = <T>(
    { organization_id }: DeliveryFixture,
    work: Parameters<typeof db.tenant<T>>[2],
  ): Promise<T> => db.tenant(organization_id, testActor, work)
  const ofThisRelease = (delivery: DeliveryFixture) => delivery.set({ releases: 0 })
  const later = (delivery: DeliveryFixture) => ({ ...delivery, releases: 7 })
  type Given = 'failed' | 'cancelled'

  /** Whether the attempt changed the delivery; the log of the attempt is always completed. */
  const attempt = async (delivery: DeliveryFixture, succeeded: boolean, next: Date | null) => {
    const before = JSON.stringify(await delivery.snapshot())
    await tenant(delivery, (tx) =>
      endAttempt(
        tx,
        { id: delivery.id, webhookId: delivery.webhook_id },
        1,
        {
          succeeded,
          http_status: succeeded ? 204 : 500,
          duration_ms: 1,
          response_headers: null,
          response_body: null,
          error: succeeded ? null : 'the receiver answered 500',
        },
        next,
      ),
    )
    return JSON.stringify(await delivery.snapshot()) !== before
  }
  const started = async (delivery: DeliveryFixture) =>
    (await markDeliveriesStarted(db.system, [delivery])) === 1
  const startFailed = (delivery: DeliveryFixture) => failDeliveryStart(db.system, delivery, 'no such queue')
  const unrecorded = (delivery: DeliveryFixture, to: string) =>
    tenant(delivery, (tx) => endUnrecordedDelivery(tx, delivery, to as Given, 'Terminated.'))
  const requeue = (delivery: DeliveryFixture & { relay_id?: string }) =>
    tenant(delivery, (tx) => requeueDelivery(tx, delivery))
  const hold = async (delivery: DeliveryFixture) =>
    (await tenant(delivery, (tx) => holdDeliveries(tx, delivery.webhook_id))) === 1
  const release = async (delivery: DeliveryFixture) =>
    (await tenant(delivery, (tx) => releaseDeliveries(tx, delivery.webhook_id))) === 1
  const pause = (delivery: DeliveryFixture) => tenant(delivery, (tx) => pauseDelivery(tx, delivery.id))
  const resume = (delivery: DeliveryFixture, to: string) =>
    tenant(delivery, (tx) =>
      resumeDelivery(tx, delivery.id, { waitsFor: to === 'queued' ? null : 'endpoint', charged: true }),
    )
  const releaseCharged = async () => (await releaseForQuota(db.system)) === 1

  describeMoves<DeliveryFixture>({
    table: readTable('db/model/outgoing/statuses.ts'),
    statuses: DELIVERY_STATUSES,
    fixture,
    drivers: {
      markDeliveriesStarted: {
        arrange: ofThisRelease,
        act: started,
        unmet: { 'another release': (delivery) => started(later(delivery)) },
      },
      failDeliveryStart: {
        arrange: ofThisRelease,
        act: startFailed,
        unmet: { 'another release': (delivery) => startFailed(later(delivery)) },
      },
      beginAttempt: {
        act: async (delivery) =>
          (await tenant(delivery, (tx) => beginAttempt(tx, delivery.id, randomUUID()))) !== undefined,
      },
      'endAttempt, succeeded': { act: (delivery) => attempt(delivery, true, null) },
      'endAttempt, failed': { act: (delivery) => attempt(delivery, false, null) },
      'endAttempt, retried': {
        act: (delivery) => attempt(delivery, false, new Date(Date.now() + 60_000)),
      },
      endDelivery: {
        act: (delivery, to) => tenant(delivery, (tx) => endDelivery(tx, delivery.id, to as Given, null)),
      },
      endUnrecordedDelivery: {
        arrange: ofThisRelease,
        act: unrecorded,
        unmet: { 'another release': (delivery, to) => unrecorded(later(delivery), to) },
      },
      requeueDelivery: {
        arrange: ofThisRelease,
        act: requeue,
        unmet: {
          'another release': (delivery) => requeue(later(delivery)),
          'another relay': (delivery) => requeue({ ...delivery, relay_id: randomUUID() }),
        },
      },
      holdDeliveries: {
        arrange: (delivery) => delivery.set({ test: false }),
        act: hold,
        unmet: { 'a test': (delivery) => delivery.set({ test: true }).then(() => hold(delivery)) },
      },
      releaseDeliveries: {
        async arrange(delivery, to) {
          const held = (await delivery.status()) === 'held'
          await delivery.set({ charged: false, held_for: held ? 'endpoint' : null })
          await delivery.setQuota(to === 'queued' ? 1_000 : 0)
        },
        act: release,
        unmet: {
          'one that is held for the quota': async (delivery) => {
            await delivery.set({ held_for: 'quota' })
            return release(delivery)
          },
          'a paused one': async (delivery) => {
            await delivery.set({ held_for: 'paused' })
            return release(delivery)
          },
        },
      },
      pauseDelivery: {
        act: pause,
        arrange: (delivery) => delivery.set({ held_for: null }),
        unmet: {
          'one that is paused': async (delivery) => {
            await delivery.set({ held_for: 'paused' })
            return pause(delivery)
          },
        },
      },
      resumeDelivery: {
        async arrange(delivery) {
          await delivery.set({ held_for: (await delivery.status()) === 'held' ? 'paused' : null })
        },
        act: resume,
        unmet: { 'one that is held for its endpoint': resume },
      },
      releaseForQuota: {
        async arrange(delivery) {
          await delivery.set({ held_for: (await delivery.status()) === 'held' ? 'quota' : null })
          await delivery.setEndpoint({ status: 'Active' })
          await delivery.setQuota(1_000)
        },
        act: releaseCharged,
        unmet: {
          'one that is held for its endpoint': releaseCharged,
          'a paused one': async (delivery) => {
            await delivery.set({ held_for: 'paused' })
            return releaseCharged()
          },
          'one whose endpoint is Inactive': async (delivery) => {
            await delivery.set({ held_for: 'quota' })
            await delivery.setEndpoint({ status: 'Inactive' })
            return releaseCharged()
          },
          'one that the quota does not allow': async (delivery) => {
            await delivery.set({ held_for: 'quota' })
            await delivery.setQuota(0)
            return releaseCharged()
          },
        },
      },
    },
  })
})
