import { setTimeout as pause } from 'node:timers/promises'
import {
  createContact,
  type Load,
  listContacts,
  listRuns,
  type Operation,
  readContact,
  receiveWebhook,
  startRun,
} from '../load/operations.ts'

/** A load whose requests are timed. */
export interface TimedLoad extends Load {
  /** Milliseconds of each request since the last call. */
  times: number[]
}

const CAPACITY_CLIENTS = 16
const CAPACITY_MS = 20_000
/** Maximum number of open requests of an open loop, if the service is too slow. */
const MAX_OPEN = 500

/** One round of the mix. */
const MIX: Operation[] = [
  createContact,
  readContact,
  listContacts,
  readContact,
  startRun,
  readContact,
  receiveWebhook,
  listRuns,
  readContact,
  listContacts,
]

/** The ledger counts the requests that failed. */
async function perform(load: TimedLoad, index: number): Promise<void> {
  const started = performance.now()
  await MIX[index % MIX.length]!(load).catch(() => {})
  load.times.push(performance.now() - started)
}

/**
 * Requests per second of a closed loop, until the work that they started has ended: the api accepts faster than a
 * worker and Temporal process. `drained` resolves when no run and no delivery is open.
 */
export async function measureCapacity(load: TimedLoad, drained: () => Promise<unknown>): Promise<number> {
  let count = 0
  const started = performance.now()
  const until = started + CAPACITY_MS
  const client = async () => {
    while (performance.now() < until) await perform(load, count++)
  }
  await Promise.all(Array.from({ length: CAPACITY_CLIENTS }, client))
  await drained()
  return count / ((performance.now() - started) / 1_000)
}

/** Sends requests at a rate, without waiting for the responses of earlier ones. */
export async function openLoop(load: TimedLoad, perSecond: number, milliseconds: number): Promise<void> {
  const started = performance.now()
  const open = new Set<Promise<void>>()
  for (let sent = 0; ; ) {
    const elapsed = performance.now() - started
    if (elapsed >= milliseconds) break
    for (const due = (elapsed / 1_000) * perSecond; sent < due && open.size < MAX_OPEN; ) {
      const one = perform(load, sent++).finally(() => open.delete(one))
      open.add(one)
    }
    await pause(10)
  }
  await Promise.all(open)
}
