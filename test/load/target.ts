import type { TestStack } from '../support/stack.ts'
import type { Outside } from './outside.ts'

/** A stack that is prepared for the load. */
export interface Target {
  /** The apis that share the load, without a trailing slash. */
  apiUrls: string[]
  headers: Record<string, string>
  /** `path` of the incoming webhook on each api. */
  incoming: { path: string; secret: string }
}

/**
 * Effects on own data before and after a timer and a call, which has a single attempt that a fault must not use up.
 * Each effect is a contact with the id of the run, so that a doubled effect is visible.
 */
const loadSpec = (url: string) => `name: Load
trigger: {type: webhook}
nodes:
  greeting:
    type: set_fields
    config: {fields: {text: "Run {{ run.id }}"}}
  before:
    type: crm_manager
    config: {operation: create, entity: contacts, fields: {first_name: before, last_name: "{{ run.id }}"}}
  pause:
    type: delay
    config: {for: 1s}
  call:
    type: api_request
    retry: {max_attempts: 1}
    timeout: 2m
    config: {method: POST, url: "${url}/call", body: {run: "{{ run.id }}"}}
  after:
    type: crm_manager
    config: {operation: create, entity: contacts, fields: {first_name: after, last_name: "{{ run.id }}"}}
outputs: {text: "{{ nodes.greeting.output.text }}"}
`

/** Its runs end only by cancellation. */
const LONG = `name: Long
nodes:
  pause:
    type: delay
    config: {for: 30d}
`

/** Waits for one signal, then for another. */
const WAITING = `name: Waiting
nodes:
  first:
    type: wait_for_signal
    config: {name: first}
  second:
    type: wait_for_signal
    config: {name: second}
`

/** Waits for the answer of a person. */
const ASKS = `name: Asks
nodes:
  ask:
    type: approval
    config: {title: "Run {{ run.id }}?", timeout: 1d}
outputs: {decision: "{{ nodes.ask.output.decision }}"}
`

/** Ends in its first segment. */
const QUICK = `name: Quick
nodes:
  greeting:
    type: set_fields
    config: {fields: {text: "Run {{ run.id }}"}}
`

/** Items of the loop of `Many calls`, and calls of each, all of which are ready at once. */
const ITEMS = 41
const CALLS_OF_ITEM = 50
export const MANY_CALLS = ITEMS * CALLS_OF_ITEM

/** More calls than Temporal lets a workflow wait for; a run has only some of them in progress. */
function manyCallsSpec(url: string) {
  const names = Array.from({ length: CALLS_OF_ITEM }, (_, n) => `call${n}`)
  const call = (name: string) => ({
    type: 'api_request',
    retry: { max_attempts: 1 },
    timeout: '10m',
    config: { method: 'POST', url: `${url}/call`, body: { run: `{{ run.id }} {{ index }} ${name}` } },
    next: 'end',
  })
  const each = {
    type: 'for_each',
    config: { items: Array.from({ length: ITEMS }, (_, n) => n), concurrency: 50, output: 1 },
    next: { item: names, done: 'end' },
  }
  const nodes = { each, ...Object.fromEntries(names.map((name) => [name, call(name)])) }
  return JSON.stringify({ name: 'Many calls', nodes })
}

/** The events that the outgoing webhook selects. */
export const SUBSCRIBED = ['contact.created', 'workflow.completed']

/** Creates the workflows and the webhooks. `beside` are further stacks on the same database. */
export async function prepareTarget(
  stack: TestStack,
  outside: Outside,
  beside: TestStack[] = [],
): Promise<Target> {
  const json = { 'content-type': 'application/json' }
  const post = async (path: string, headers: Record<string, string>, body?: object) => {
    const answer = await fetch(stack.apiUrl + path, {
      method: 'POST',
      headers: { ...json, ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return { answer, body: (await answer.json()) as Record<string, string> }
  }
  const headers = { ...json, authorization: `Bearer ${stack.key}` }
  const workflow = (await post('/v1/workflows', headers, { spec: loadSpec(outside.url) })).body
  await post(`/v1/workflows/${workflow.workflow_id}/activate`, headers)
  for (const spec of [LONG, WAITING, ASKS, QUICK, manyCallsSpec(outside.url)])
    await post('/v1/workflows', headers, { spec })
  const session = await post('/app/session', {}, stack.owner)
  const app = {
    cookie: session.answer.headers.get('set-cookie')!.split(';')[0]!,
    'x-csrf-token': session.body.csrf_token!,
  }
  await post('/app/webhooks/outgoing', app, {
    name: 'Load',
    url: `${outside.url}/hook`,
    events: SUBSCRIBED,
    concurrency: 50,
    retry_schedule: Array.from({ length: 20 }, () => 2),
  })
  const incoming = { name: 'Load', rate_limit: 10_000, workflow_id: workflow.workflow_id }
  const webhook = (await post('/app/webhooks/incoming', app, incoming)).body
  return {
    apiUrls: [stack, ...beside].map(({ apiUrl }) => apiUrl),
    headers,
    incoming: { path: new URL(webhook.url!).pathname, secret: webhook.secret! },
  }
}
