import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Soak } from './set-up.ts'

const CAPACITY_CLIENTS = 16
const CAPACITY_MS = 20_000
/** Bounds what an open loop piles up where the service cannot keep up. */
const MAX_OPEN = 500

type Operation = (soak: Soak) => Promise<void>

async function send(
  soak: Soak,
  path: string,
  body?: object,
  headers = soak.headers,
): Promise<Record<string, string>> {
  const answer = await fetch(path.startsWith('http') ? path : soak.apiUrl + path, {
    method: body ? 'POST' : 'GET',
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  const parsed = (await answer.json()) as Record<string, string>
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${JSON.stringify(parsed)}`)
  return parsed
}

const create: Operation = async (soak) => {
  const contact = { first_name: 'Soak', email: `${randomUUID()}@a.example` }
  soak.contacts.push((await send(soak, '/v1/objects/contacts', contact)).id!)
}
const read: Operation = async (soak) => {
  const id = soak.contacts[Math.floor(Math.random() * soak.contacts.length)]
  await send(soak, id ? `/v1/objects/contacts/${id}` : '/v1/objects/contacts?limit=1')
}
const list: Operation = async (soak) => void (await send(soak, '/v1/objects/contacts?limit=50'))
const listRuns: Operation = async (soak) => void (await send(soak, '/v1/runs?limit=50'))
const run: Operation = async (soak) => {
  const started = await send(soak, '/v1/workflows/run-by-name', { name: 'Soak', inputs: {}, confirm: true })
  soak.runs.push(started.run_id!)
}
const receive: Operation = async (soak) => {
  const body = { first_name: 'Form', email: `${randomUUID()}@b.example` }
  const headers = { 'content-type': 'application/json', 'x-webhook-secret': soak.incoming.secret }
  soak.incomingRecords.push((await send(soak, soak.incoming.url, body, headers)).record_id!)
}

/** One round of the mix. */
const MIX: Operation[] = [create, read, list, read, run, read, receive, listRuns, read, list]

async function perform(soak: Soak, index: number): Promise<void> {
  const started = performance.now()
  try {
    await MIX[index % MIX.length]!(soak)
  } catch {
    soak.failures++
  }
  soak.times.push(performance.now() - started)
}

/** Requests per second of a closed loop. */
export async function measureCapacity(soak: Soak): Promise<number> {
  let count = 0
  const until = performance.now() + CAPACITY_MS
  const client = async () => {
    while (performance.now() < until) await perform(soak, count++)
  }
  await Promise.all(Array.from({ length: CAPACITY_CLIENTS }, client))
  return count / (CAPACITY_MS / 1_000)
}

/** Sends requests at a rate, whether or not the earlier ones were answered. */
export async function openLoop(soak: Soak, perSecond: number, milliseconds: number): Promise<void> {
  const started = performance.now()
  const open = new Set<Promise<void>>()
  for (let sent = 0; ; ) {
    const elapsed = performance.now() - started
    if (elapsed >= milliseconds) break
    for (const due = (elapsed / 1_000) * perSecond; sent < due && open.size < MAX_OPEN; ) {
      const one = perform(soak, sent++).finally(() => open.delete(one))
      open.add(one)
    }
    await pause(10)
  }
  await Promise.all(open)
}
