import { setTimeout as sleep } from 'node:timers/promises'
import { CallSlots } from '../../activities/slots/call-slots.ts'
import { inSlot } from '../../activities/slots/in-slot.ts'
import { connect } from '../../db/postgres/connect.ts'
import { startApi } from './api-process.ts'
import { type LoadResult, load, median, type Shot } from './load.ts'
import { batches, singles, target } from './record-cases.ts'
import { print } from './report.ts'
import { seed } from './seed.ts'

/** Many short rounds, because the speed of a shared machine varies. */
const ROUNDS = 15
const SECONDS = 0.4
const CONTACTS = 10_000
const CALLS = 200_000

/**
 * What shares and quotas cost: requests of one api process with and without them, in turns (`shares-api.ts` has the
 * switch), and the slot of a call in the worker.
 */
export async function benchShares(): Promise<void> {
  const api = await startApi(undefined, ['--import', 'tsx', 'test/bench/shares-api.ts'])
  const db = connect({ url: api.databaseUrl })
  try {
    const { big } = await seed(db, CONTACTS)
    const at = await target(db, api.url, big)
    const headers = { authorization: `Bearer ${at.key}`, 'content-type': 'application/json' }
    const spec = 'name: Bench\nnodes: {a: {type: stop}}'
    const saved = await fetch(`${api.url}/v1/workflows`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ spec }),
    })
    const { workflow_id } = (await saved.json()) as { workflow_id: string }
    const run = {
      path: `/v1/workflows/${workflow_id}/run`,
      method: 'POST',
      body: '{"confirm":true}',
    } as const
    const cases: Record<string, (n: number) => Omit<Shot, 'headers'>> = {
      ...Object.fromEntries(
        Object.entries({ ...singles, ...batches }).map(([name, shotOf]) => [name, shotOf(at)]),
      ),
      'start of a run': () => run,
    }
    let made = Date.now()
    for (const [name, shot] of Object.entries(cases))
      for (const clients of name.startsWith('batch') ? [1] : [1, 32]) {
        const fire = () => load(api.url, clients, SECONDS, () => ({ ...shot(made++), headers }))
        printRounds(
          `${name}, ${clients} client${clients === 1 ? '' : 's'}`,
          await withAndWithout(api.pid, fire),
        )
      }
  } finally {
    await db.close()
    await api.stop()
  }
  await benchSlots()
}

type Round = Record<'on' | 'off', LoadResult>

/** Each round has both, in turns of the order; the first is a warm-up. */
async function withAndWithout(pid: number, fire: () => Promise<LoadResult>): Promise<Round[]> {
  const rounds: Round[] = []
  const flip = async () => {
    process.kill(pid, 'SIGUSR2')
    await sleep(20)
  }
  for (let round = 0; round <= ROUNDS; round++) {
    const first = await fire()
    await flip()
    const second = await fire()
    // The state stays for the next round, which begins with the other side.
    rounds.push(round % 2 === 0 ? { on: first, off: second } : { on: second, off: first })
  }
  if (ROUNDS % 2 === 0) await flip()
  return rounds.slice(1)
}

function printRounds(name: string, rounds: Round[]): void {
  const of = (pick: (round: Round) => number) => median(rounds.map(pick))
  const rate = of(({ on, off }) => on.perSecond / off.perSecond)
  const refused = rounds.reduce((sum, { on, off }) => sum + on.refused + off.refused, 0)
  print(
    `${name.padEnd(34)} ${of(({ on }) => on.perSecond).toFixed(0)}/s, without ${of(({ off }) => off.perSecond).toFixed(0)}/s, ratio ${rate.toFixed(3)}; p50 ${of(({ on }) => on.p50).toFixed(2)} ms, ${of(({ on, off }) => on.p50 - off.p50).toFixed(3)} more${refused > 0 ? `; ${refused} answers were not 2xx, the figures are void` : ''}`,
  )
}

/** The time that a call of the worker takes for its slot, of 100 organizations that hold some. */
async function benchSlots(): Promise<void> {
  const slots = new CallSlots()
  const { signal } = new AbortController()
  for (let n = 0; n < 100; n++) await slots.take({ organizationId: `held${n}`, service: `host${n}` }, signal)
  const started = performance.now()
  for (let n = 0; n < CALLS; n++)
    await inSlot(slots, { organizationId: `of${n % 100}`, signal }, async (reach) => reach(`host${n % 50}`))
  print(`slot of a call: ${(((performance.now() - started) * 1_000) / CALLS).toFixed(2)} µs`)
}
