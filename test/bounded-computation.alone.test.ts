import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { ATTACKS, WARM_UP } from './support/attacks.ts'
import { type HealthProbe, probeHealth } from './support/health-probe.ts'
import { startStack, type TestStack } from './support/stack.ts'
import { type Client, clientOf } from './support/stack-client.ts'

/** What the main thread of a process may compute before it answers `/healthz`, whatever a tenant asks of it. */
const LIMIT_MS = 200
/** One measurement may be bad by chance: an attack is bounded if one of these is good. */
const MEASUREMENTS = 5
/** Attacks at the same time. */
const TOGETHER = 6

describe('what a tenant chooses to compute', function () {
  this.timeout(180_000)
  let stack: TestStack
  let client: Client
  let probe: HealthProbe

  before(async () => {
    stack = await startStack({ env: { LOG_LEVEL: 'warn' } })
    client = await clientOf(stack)
    probe = await probeHealth(
      { url: stack.apiUrl, pid: stack.pid('api') },
      { url: stack.workerUrl, pid: stack.pid('worker') },
    )
    // Warm: the first request of a kind compiles code.
    for (let time = 0; time < 2; time++) for (const { run } of WARM_UP) await run(client)
  })
  after(async () => {
    await probe?.close()
    await stack?.stop()
  })

  for (const { name, run } of ATTACKS)
    it(`holds up neither api nor worker: ${name}`, () => assertBounded(LIMIT_MS, () => run(client)))

  it('holds up neither api nor worker: several attacks at once', () =>
    assertBounded(2 * LIMIT_MS, () => Promise.all(ATTACKS.slice(0, TOGETHER).map(({ run }) => run(client)))))

  async function assertBounded(limit: number, attack: () => Promise<unknown>): Promise<void> {
    let least = [Number.POSITIVE_INFINITY]
    for (let time = 0; time < MEASUREMENTS && Math.max(...least) >= limit; time++) {
      if (time > 0) await sleep(500)
      await probe.longest()
      await attack()
      const longest = await probe.longest()
      if (Math.max(...longest) < Math.max(...least)) least = longest
    }
    const [api, worker] = least.map((ms) => ms.toFixed(0))
    if (process.env.SHOW_TIMES) process.stdout.write(`      ${api} / ${worker} ms of api / worker\n`)
    assert.ok(
      Math.max(...least) < limit,
      `/healthz waited for ${api} ms of the api and ${worker} ms of the worker`,
    )
  }
})
