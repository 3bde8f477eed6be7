import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A service that workflows call: it holds its answers until `release`. */
export async function startHeldService() {
  const calls: { path: string; key: string }[] = []
  const held = new Map<ServerResponse, string>()
  let holds = true
  const failing = new Set<string>()
  const passing = new Set<string>()
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const path = request.url!.slice(1)
    calls.push({ path, key: String(request.headers['idempotency-key']) })
    const [shape] = path.split('/')
    if (failing.has(shape!) || failing.has(path)) response.writeHead(400).end()
    else if (holds && !passing.has(shape!)) {
      held.set(response, path)
      response.on('close', () => held.delete(response))
    } else answer(response, path)
  })
  const answer = (response: ServerResponse, path: string) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ path }))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    /** The shapes, first parts of paths, and paths whose calls are refused with 400. */
    failing,
    /** The shapes whose calls are never held. */
    passing,
    /** The paths of the open calls. */
    held: () => [...held.values()].sort(),
    /** Answers all open calls and those that come. */
    release() {
      holds = false
      for (const [response, path] of held) answer(response, path)
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export type HeldService = Awaited<ReturnType<typeof startHeldService>>

/** The shapes that a workflow can have, as authors write them. Each creates contacts, named after its run. */
export function shapeSpecs(url: string): Record<string, string> {
  const call = (path: string, more = '') =>
    `{type: api_request, retry: {max_attempts: 10, initial_interval: 200ms}, config: {method: POST, url: "${url}/${path}"}${more}}`
  const save = (name: string, more = '') =>
    `{type: crm_manager, config: {operation: create, entity: contacts, fields: {first_name: "${name}", last_name: "{{ run.id }}"}}${more}}`
  const set = (more: string) => `{type: set_fields, config: {fields: {n: 1}}${more}}`
  const ask = (title: string) => `{type: approval, config: {title: ${title}}}`
  return {
    parallel: `
nodes:
  start: ${save('start', ', next: [a, b, c]')}
  a: ${call('parallel/a', ', next: saved_a')}
  saved_a: ${save('a', ', next: end')}
  b: ${call('parallel/b', ', next: saved_b')}
  saved_b: ${save('b', ', next: end')}
  c: ${call('parallel/c', ', next: saved_c')}
  saved_c: ${save('c', ', next: end')}
outputs: {paths: ["{{ nodes.a.output.body.path }}", "{{ nodes.b.output.body.path }}", "{{ nodes.c.output.body.path }}"]}`,
    joins: `
nodes:
  start: ${set(', next: [quick, slow, choice]')}
  quick: ${set(', next: [all, any]')}
  slow: ${call('joins/slow', ', next: [all, any]')}
  choice: {type: condition, config: {conditions: [{left: 1, operator: eq, right: 2}]}, next: {"true": dead, "false": end}}
  dead: ${save('dead', ', next: all')}
  all: ${save('all', ', join: all, next: end')}
  any: ${save('any', ', join: any, next: end')}`,
    loop: `
nodes:
  each: {type: for_each, config: {items: [0, 1, 2, 3, 4], concurrency: 3, output: "{{ nodes.call.output.body.path }}"}, next: {item: before, done: last}}
  before: ${save('before {{ item }}', ', next: call')}
  call: ${call('loop/{{ item }}', ', next: after')}
  after: ${save('after {{ item }}', ', next: end')}
  last: ${save('last')}
outputs: {paths: "{{ nodes.each.output.items | map: 'output' }}"}`,
    nested: `
nodes:
  outer: {type: for_each, config: {items: [[a, b], [c, d]], concurrency: 2, output: "{{ nodes.inner.output.items | map: 'output' }}"}, next: {item: inner, done: end}}
  inner: {type: for_each, config: {items: "{{ item }}", concurrency: 2, output: "{{ nodes.call.output.body.path }}"}, next: {item: before, done: end}}
  before: ${save('before {{ item }}', ', next: call')}
  call: ${call('nested/{{ nodes.outer.output.index }}{{ item }}', ', next: end')}
outputs: {paths: "{{ nodes.outer.output.items | map: 'output' }}"}`,
    'child below': `
inputs: {n: number}
nodes:
  before: ${save('child before')}
  call: ${call('child/call')}
  after: ${save('child after')}
outputs: {twice: "{{ inputs.n | times: 2 }}"}`,
    child: `
nodes:
  before: ${save('before')}
  sub: {type: run_workflow, config: {workflow: child below, inputs: {n: 21}}}
  after: ${save('after {{ nodes.sub.output.outputs.twice }}')}
outputs: {twice: "{{ nodes.sub.output.outputs.twice }}", child: "{{ nodes.sub.output.run_id }}"}`,
    approval: `
nodes:
  before: ${save('before')}
  first: ${ask('first').replace(/}$/, ', next: {approved: second, rejected: end}}')}
  second: ${ask('second').replace(/}$/, ', next: {approved: end, rejected: after}}')}
  after: ${save('after')}
outputs: {decisions: ["{{ nodes.first.output.decision }}", "{{ nodes.second.output.decision }}"]}`,
    'event wait': `
nodes:
  before: ${save('before')}
  wait: {type: wait_for_event, config: {event: contact.created, when: "{{ event.record.first_name == 'awaited' }}"}, next: {received: after}}
  after: ${save('after')}
outputs: {email: "{{ nodes.wait.output.record.email }}"}`,
    schedule: `
trigger: {type: schedule, cron: "0 3 1 1 *"}
nodes:
  before: ${save('scheduled')}
  call: ${call('schedule/call')}
  after: ${save('after')}`,
    'chain first': `
trigger: {type: event, events: [contact.created], when: "{{ trigger.record.first_name == 'chain-start' }}"}
nodes:
  call: ${call('chain/{{ trigger.record.last_name }}')}
  emit: {type: emit_event, config: {event: chain.continued, data: {link: "{{ trigger.record.last_name }}"}}}`,
    'chain second': `
trigger: {type: event, events: [chain.continued]}
nodes:
  saved: {type: crm_manager, config: {operation: create, entity: contacts, fields: {first_name: chain-end, last_name: "{{ trigger.data.link }}"}}}`,
    'on error': `
nodes:
  saved: {type: crm_manager, config: {operation: create, entity: contacts, fields: {first_name: "failed at {{ trigger.node.id }}", last_name: "{{ trigger.run.id }}"}}}
  hold: {type: wait_for_signal, config: {name: go}, next: {received: after}}
  after: {type: crm_manager, config: {operation: create, entity: contacts, fields: {first_name: handled, last_name: "{{ trigger.run.id }}"}}}`,
    failing: `
settings: {error_workflow: on error}
nodes:
  before: ${save('before')}
  hold: {type: wait_for_signal, config: {name: go}, next: {received: call}}
  call: ${call('failing/call')}
  refuse: {type: stop, config: {status: failed, message: No.}}`,
    retry: `
nodes:
  before: ${save('before')}
  second: ${call('retry/second')}
  after: ${save('after')}
outputs: {contact: "{{ nodes.before.output.id }}"}`,
    'retry in loop': `
nodes:
  each: {type: for_each, config: {items: [0, 1, 2, 3, 4], output: "{{ nodes.call.output.body.path }}"}, next: {item: before, done: last}}
  before: ${save('before {{ item }}', ', next: call')}
  call: ${call('again/{{ item }}', ', next: hold')}
  hold: {type: wait_for_signal, when: "{{ item == 2 }}", config: {name: go}, next: {received: after}}
  after: ${save('after {{ item }}', ', next: end')}
  last: ${save('last')}
outputs: {paths: "{{ nodes.each.output.items | map: 'output' }}"}`,
    pause: `
nodes:
  before: ${save('before')}
  call: ${call('pause/call')}
  after: ${save('after')}`,
    bulk: `
inputs: {n: number}
nodes:
  before: ${save('before {{ inputs.n }}')}
  call: ${call('bulk/{{ inputs.n }}')}
  after: ${save('after {{ inputs.n }}')}`,
    stop: `
nodes:
  start: ${save('start', ', next: [gate, long]')}
  gate: ${call('stop/gate', ', next: stopped')}
  stopped: {type: stop, config: {outputs: {by: gate}}, next: end}
  long: {type: delay, config: {for: 1h}, next: never}
  never: ${save('never')}`,
    timeout: `
settings: {timeout: 30s}
nodes:
  start: ${save('start', ', next: long')}
  long: {type: delay, config: {for: 1h}, next: never}
  never: ${save('never')}`,
  }
}
