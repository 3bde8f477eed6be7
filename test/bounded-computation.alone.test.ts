import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { ATTACKS, WARM_UP } from './support/attacks.ts'
import { isInThread } from './support/computation.ts'
import { type HealthProbe, probeHealth } from './support/health-probe.ts'
import { parseMetrics, sumOf } from './support/prometheus.ts'
import { LOCAL_ONLY, startStack, type TestStack } from './support/stack.ts'
import { type Client, clientOf } from './support/stack-client.ts'

/**
 * What the main thread of a process may compute before it answers `/healthz`, whatever a tenant asks of it. The longest
 * take 150 to 260 ms, by the speed of the machine; what is not bounded takes seconds.
 */
const LIMIT_MS = 400
/** One measurement may be bad by chance: an attack is bounded if one of these is good. */
const MEASUREMENTS = 5

describe('what a tenant chooses to compute', () => {
  let stack: TestStack
  let client: Client
  let probe: HealthProbe

  before(async () => {
    stack = await startStack({ env: { ...LOCAL_ONLY, ALLOW_INSECURE_WEBHOOKS: 'true', LOG_LEVEL: 'warn' } })
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

  for (const attack of ATTACKS)
    it(`holds up neither api nor worker: ${attack.name}`, async () => {
      await assertBounded(LIMIT_MS, () => attack.run(client))
      if (!isInThread(attack) || attack.inThread === false) return
      const before = await handOvers()
      await attack.run(client)
      assert.ok((await handOvers()) > before, 'no thread was given a task')
    })

  it('hands over as much when several attack at once', async () => {
    const attacks = ATTACKS.filter((attack) => isInThread(attack) && attack.inThread !== false)
    const before = await handOvers()
    await Promise.all(attacks.map(({ run }) => run(client)))
    assert.ok((await handOvers()) - before >= attacks.length)
  })

  /** The tasks that threads of both processes were given. */
  async function handOvers(): Promise<number> {
    const texts = await Promise.all(
      [stack.apiUrl, stack.workerUrl].map(async (url) => (await fetch(`${url}/metrics`)).text()),
    )
    return texts.reduce((sum, text) => sum + sumOf(parseMetrics(text), 'agx_thread_tasks_total'), 0)
  }

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
