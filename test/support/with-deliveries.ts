import { type Deliveries, startDeliveries } from './deliveries.ts'
import { startWorker, type TestWorker } from './worker.ts'

export type DeliveriesSuite = Deliveries & { worker: TestWorker }

/** For a `describe`: what `startDeliveries` gives, and a worker on it. Its members are set once tests run. */
export function withDeliveries(): DeliveriesSuite {
  const suite = {} as DeliveriesSuite
  before(async () => {
    Object.assign(suite, await startDeliveries())
    suite.worker = await startWorker(suite.db, { secretsKey: suite.api.secretsKey })
  })
  beforeEach(() => suite.receiver.reset())
  after(async () => {
    await suite.worker?.stop()
    await suite.stop?.()
  })
  return suite
}
