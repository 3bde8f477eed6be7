import { setTimeout as pause } from 'node:timers/promises'
import { acknowledgedIn } from '../load/ledger.ts'
import { startBalancer } from '../support/balancer.ts'
import type { Fault } from './situation.ts'

/** The requests in progress at the end have ended by then. */
const CLOSE_MS = 10_000

/** What a deploy does to the processes: each is told to stop, and replaced, while the others carry the load. */
export const rollingRestart: Fault = {
  name: 'deploy',
  title: 'two apis and two workers behind a balancer are stopped and replaced, one after the other',
  kind: 'kill',
  second: true,
  // The default of the api behind a balancer; `npm start`, which has none, sets it to 0.
  system: { env: { SHUTDOWN_DELAY: '5' } },
  async strike({ system, load, say }) {
    const { target, ledger } = load
    const direct = target.apiUrls
    const balancer = await startBalancer()
    const stacks = [system.stack, system.second!]
    try {
      for (const { apiUrl } of stacks) await balancer.add(apiUrl)
      target.apiUrls = [balancer.url]
      const before = { failures: ledger.failures, acknowledged: acknowledgedIn(ledger) }
      for (const stack of stacks) {
        await system.replace(stack, 'api')
        await balancer.add(stack.apiUrl)
        await system.replace(stack, 'worker')
      }
      const failed = ledger.failures - before.failures
      const acknowledged = acknowledgedIn(ledger) - before.acknowledged
      say(`  behind the balancer ${acknowledged} requests were acknowledged, ${failed} attempts failed`)
      if (failed > 0 || acknowledged === 0)
        throw new Error(
          `${failed} attempts failed behind the balancer, and ${acknowledged} were acknowledged`,
        )
    } finally {
      target.apiUrls = direct
      load.begun.push(pause(CLOSE_MS).then(() => balancer.close()))
    }
    return {}
  },
}
