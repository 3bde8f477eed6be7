import { randomUUID } from 'node:crypto'
import { routes } from '../../../api/v1/route-table.ts'
import { bodyOf, filled, QUERIES, tablesOf } from '../../support/route-paths.ts'
import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'
import { Caller, eventually, withLimits } from '../workflows.ts'

/** Stores a value after a signal, which comes when the organization is full. */
const KEEP = `name: Keep
nodes:
  wait:
    type: wait_for_signal
    config: {name: go}
  keep:
    type: key_value
    config: {operation: set, key: "k {{ run.id }}", value: "{{ run.id }}"}
`

/** Fills an organization to its quota, then stores more by every way in. */
export const storage: Family = {
  name: 'storage',
  title: 'more bytes than the plan allows',
  async run(ground, tally) {
    const session = await ground.attacker.session('owner')
    const app = async (path: string, body: object) =>
      JSON.parse((await ground.send('POST', `/app${path}`, session, body)).text)
    const webhook = await app('/webhooks/incoming', { name: 'Full' })
    const caller = new Caller(ground, ground.attacker)
    const run = await caller.run(await caller.workflow(KEEP))
    const isWaiting = async () => {
      const node = await ground.db.system('run_nodes').where({ run_id: run, node_id: 'wait' }).first('status')
      return node !== undefined || undefined
    }
    tally.attempt((await eventually(isWaiting, 60)) === true, 'the run does not wait for its signal')
    await withLimits(ground, { storage_bytes: 1_000_000 }, async () => {
      await fill(ground, tally)
      await everyWay(ground, tally)
      await receive(ground, tally, webhook)
      await caller.done('POST', `/runs/${run}/signal`, { name: 'go' })
      const status = await caller.endOf(run)
      const { text } = await caller.call('GET', `/runs/${run}`)
      tally.attempt(
        status === 'failed' && text.includes('quota_exceeded'),
        `a run that stores a value while full: ${text.slice(0, 500)}`,
      )
    })
    // What was over the old limit is within the new one.
    const stores = async () =>
      (await caller.call('POST', '/objects/notes', { body: 'small' })).status === 201 || undefined
    tally.attempt(
      (await eventually(stores, 90)) === true,
      'an organization with a greater limit stores nothing',
    )
  },
}

const isRefused = ({ status, text }: { status: number; text: string }) =>
  status === 429 && text.includes('quota_exceeded')

async function fill(ground: Ground, tally: Tally): Promise<void> {
  const caller = new Caller(ground, ground.attacker)
  const body = 'word '.repeat(10_000)
  const refused = await eventually(async () => {
    const answer = await caller.call('POST', '/objects/notes', { body })
    tally.attempt(
      answer.status === 201 || isRefused(answer),
      `a note: ${answer.status} ${answer.text.slice(0, 200)}`,
    )
    return isRefused(answer) || undefined
  }, 60)
  tally.attempt(refused === true, 'an organization over its quota still stores notes')
}

/** Each operation that stores more, from the route table. Ids that do not exist are refused after the quota. */
async function everyWay(ground: Ground, tally: Tally): Promise<void> {
  const { attacker, send } = ground
  for (const route of routes.filter((one) => 'grows' in one)) {
    const ids = Object.fromEntries(tablesOf(route.path).map(([name]) => [name, randomUUID()]))
    const path = `/v1${filled(route.path, ids)}${QUERIES[route.id] ?? ''}`
    const { body, headers = {} } = bodyOf(route) as { body?: unknown; headers?: Record<string, string> }
    const answer = await send(
      route.method,
      path,
      { Authorization: `Bearer ${attacker.key}`, ...headers },
      body,
    )
    const isRight = isRefused(answer) || (typeof route.grows === 'function' && answer.status < 500)
    tally.attempt(isRight, `${route.method} ${path}: ${answer.status} ${answer.text.slice(0, 200)}`)
  }
}

/** What a sender was told to repeat is in the log, from which it can be replayed. */
async function receive(
  { attacker, db, send }: Ground,
  tally: Tally,
  webhook: { id: string; secret: string },
): Promise<void> {
  const headers = { 'X-Webhook-Secret': webhook.secret }
  const sent = 10
  for (let n = 0; n < sent; n++) {
    const body = { last_name: `full ${n}`, email: `full${n}@example.com` }
    const answer = await send('POST', `/webhooks/incoming/${webhook.id}`, headers, body)
    tally.attempt(isRefused(answer), `a webhook: ${answer.status} ${answer.text.slice(0, 200)}`)
  }
  const rows = await db
    .system('incoming_logs')
    .where({ organization_id: attacker.organizationId, webhook_id: webhook.id, error: 'quota_exceeded' })
    .whereNotNull('payload')
  tally.attempt(rows.length === sent, `${sent} requests were refused, and the log has ${rows.length}`)
}
