import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'
import { Caller, eventually, withLimits } from '../workflows.ts'

/** What one root may lead to, and the runs that may be queued. */
const DESCENDANTS = 40
const QUEUED = 5

/** Each contact leads to six others, whose events lead to six runs each. */
const FAN_OUT = `name: Storm
trigger: {type: event, events: [contact.created]}
nodes:
  each:
    type: for_each
    config: {items: [1, 2, 3, 4, 5, 6], concurrency: 6}
    next: {item: more}
  more:
    type: crm_manager
    config: {operation: create, entity: contacts, fields: {last_name: "storm {{ run.id }} {{ item }}"}}
`

const QUIET = `name: Quiet
nodes:
  greeting:
    type: set_fields
    config: {fields: {text: hello}}
`

/** Runs that start each other, and more runs than an organization may queue. */
export const storms: Family = {
  name: 'storms',
  title: 'runs that start each other, and queues of runs',
  async run(ground, tally) {
    await withLimits(ground, { max_descendants: DESCENDANTS }, () => fanOut(ground, tally))
    await withLimits(ground, { max_queued: QUEUED, max_running: 0 }, () => queue(ground, tally))
  },
}

async function fanOut(ground: Ground, tally: Tally): Promise<void> {
  const { db, attacker, victim } = ground
  const caller = new Caller(ground, attacker)
  const workflowId = await caller.workflow(FAN_OUT)
  await caller.done('POST', '/objects/contacts', { last_name: 'the first' })
  const runs = () => db.system('runs').where({ workflow_id: workflowId })
  const other = new Caller(ground, victim)
  const theirs = await other.endOf(await other.run(await other.workflow(QUIET)))
  tally.attempt(theirs === 'completed', `a run of another organization was ${theirs} during a storm`)
  let last = ''
  const rest = await eventually(async () => {
    const rows = await runs().orderBy('id').select<{ status: string }[]>('status')
    const now = rows.map(({ status }) => status).join(' ')
    const isOver = last === now && !/queued|running|waiting/.test(now)
    last = now
    return isOver || undefined
  }, 120)
  tally.attempt(rest === true, `the storm did not end: ${last}`)
  const all = await runs().orderBy('id').select<{ status: string; root: string | null }[]>('status', 'root')
  const started = new Map<string, number>()
  for (const { status, root } of all) {
    if (root === null || status === 'skipped') {
      tally.attempt(true, '')
      continue
    }
    const count = (started.get(root) ?? 0) + 1
    started.set(root, count)
    tally.attempt(count <= DESCENDANTS, `run ${count} of one root started`)
  }
  const skipped = all.filter(({ status }) => status === 'skipped').length
  tally.attempt(skipped > 0, 'no run of the storm was skipped visibly')
  const { text } = await caller.call('GET', `/workflows/${workflowId}`)
  tally.attempt(text.includes('more than'), 'the workflow does not show why its runs are skipped')
  await caller.done('POST', `/workflows/${workflowId}/deactivate`, {})
}

/** No run starts meanwhile: what is queued stays so. */
async function queue(ground: Ground, tally: Tally): Promise<void> {
  const { db, attacker } = ground
  const caller = new Caller(ground, attacker)
  const workflowId = await caller.workflow(QUIET.replace('Quiet', 'Queued'))
  const path = `/workflows/${workflowId}/run`
  for (let n = 1; n <= QUEUED * 4; n++) {
    const { status, text } = await caller.call('POST', path, { confirm: true })
    const isRight = n <= QUEUED ? status === 200 : status === 429 && text.includes('quota_exceeded')
    tally.attempt(isRight, `request ${n} with ${QUEUED} queued runs allowed: ${status} ${text.slice(0, 200)}`)
  }
  await caller.done('POST', `/workflows/${workflowId}/deactivate`, { cancel_queued: true })
  const left = async () => {
    const rows = await db.system('runs').where({ workflow_id: workflowId, status: 'queued' })
    return rows.length === 0 || undefined
  }
  tally.attempt((await eventually(left, 60)) === true, 'deactivation left queued runs')
}
