/** Whole specs of the authoring guide. A test validates each without an error or a warning. */
export interface GuideExample {
  title: string
  spec: string
}

export const EXAMPLES: readonly GuideExample[] = [
  {
    title: 'Save a contact by email, and branch on what is known',
    spec: `name: Qualify a lead
inputs:
  email: {type: string, required: true}
  company_size: {type: number, default: 0}
nodes:
  save:
    type: crm_manager
    config:
      operation: upsert
      entity: contacts
      by: email
      fields: {email: "{{ inputs.email }}", lead_source: form}
  is_large:
    type: condition
    config:
      conditions: [{left: "{{ inputs.company_size }}", operator: gte, right: 100}]
    next: {"true": call, "false": nurture}
  call:
    type: crm_manager
    config:
      operation: create
      entity: tasks
      fields:
        title: "Call {{ nodes.save.output.record.email }}"
        associations: [{object: contacts, id: "{{ nodes.save.output.record.id }}"}]
  nurture:
    type: crm_manager
    config:
      operation: update
      entity: contacts
      id: "{{ nodes.save.output.record.id }}"
      fields: {lifecycle_stage: subscriber}
outputs: {contact_id: "{{ nodes.save.output.record.id }}"}
`,
  },
  {
    title: 'React to an event, call another service, and handle its failure',
    spec: `name: Announce a won deal
trigger: {type: event, events: [deal.won], when: "{{ trigger.record.amount > 1000 }}"}
nodes:
  announce:
    type: api_request
    config:
      method: POST
      url: https://chat.example.com/messages
      headers: {Authorization: "Bearer {{ secrets.chat_token }}"}
      body: {text: "Won: {{ trigger.record.name }} ({{ trigger.record.amount }} {{ trigger.record.currency }})"}
    retry: {max_attempts: 5, initial_interval: 2s}
    timeout: 10s
    next: {success: done, error: note}
  note:
    type: crm_manager
    config:
      operation: create
      entity: notes
      fields:
        body: "Could not be announced: {{ nodes.announce.error.message }}"
        associations: [{object: deals, id: "{{ trigger.record.id }}"}]
    next: done
  done: {type: stop}
`,
  },
  {
    title: 'Route by a value, wait, and join the branches',
    spec: `name: Follow up
trigger: {type: event, events: [contact.created]}
nodes:
  route:
    type: switch
    config:
      value: "{{ trigger.record.lifecycle_stage }}"
      cases: {customer: customer, lead: [lead, mql, sql]}
    next: {customer: greet, lead: pause, default: end}
  greet:
    type: emit_event
    config: {event: customer.greeted, data: {id: "{{ trigger.record.id }}"}}
    next: finish
  pause:
    type: delay
    config: {for: 2d}
    next: finish
  finish:
    type: crm_manager
    config: {operation: update, entity: contacts, id: "{{ trigger.record.id }}", fields: {last_contacted_at: "{{ run.started_at }}"}}
`,
  },
  {
    title: 'Run on a schedule, one run at a time',
    spec: `name: Open deals of the week
trigger: {type: schedule, cron: "0 8 * * 1", timezone: Europe/Zurich}
settings: {concurrency: {policy: skip}, timeout: 1h}
nodes:
  find:
    type: crm_manager
    config:
      operation: search
      entity: deals
      filters: {stage: proposal, "amount[gte]": 1000}
      sort: amount
      order: desc
      limit: 20
  any_deals:
    type: condition
    config: {conditions: [{left: "{{ nodes.find.output.data }}", operator: is_not_empty}]}
    next: {"true": report, "false": end}
  report:
    type: emit_event
    config:
      event: deals.reported
      data:
        count: "{{ nodes.find.output.data | size }}"
        names: "{{ nodes.find.output.data | map: 'name' | join: ', ' }}"
`,
  },
  {
    title: 'Do the same for each record of a search',
    spec: `name: Remind of open tasks
trigger: {type: schedule, cron: "0 7 * * 1-5"}
nodes:
  find:
    type: crm_manager
    config: {operation: search, entity: tasks, filters: {status: waiting}, limit: 100}
  each_task:
    type: for_each
    config:
      items: "{{ nodes.find.output.data }}"
      on_item_error: continue
      output: {title: "{{ item.title }}"}
    next: {item: bump, done: report}
  bump: {type: crm_manager, config: {operation: update, entity: tasks, id: "{{ item.id }}", fields: {priority: high}}}
  report:
    type: emit_event
    config: {event: tasks.bumped, data: {titles: "{{ nodes.each_task.output.results | map: 'title' }}"}}
`,
  },
]

/** The examples that the whole guide shows: a join, a loop. */
export const FIRST_EXAMPLES = EXAMPLES.filter(({ spec }) =>
  /^name: (Follow up|Remind of open tasks)\n/.test(spec),
)

/** Expressions with their results, for the table of the guide. */
export const EXPRESSIONS: readonly { text: string; scope: Record<string, unknown>; result: unknown }[] = [
  { text: '{{ inputs.name | default: "friend" }}', scope: { inputs: { name: null } }, result: 'friend' },
  { text: '{{ inputs.n > 3 and not (inputs.n == 9) }}', scope: { inputs: { n: 5 } }, result: true },
  { text: '{{ inputs.n > 3 ? "big" : "small" }}', scope: { inputs: { n: 5 } }, result: 'big' },
  { text: '{{ (inputs.a | downcase) == "won" }}', scope: { inputs: { a: 'Won' } }, result: true },
  { text: '{{ inputs.m | plus: 0.5 }}', scope: { inputs: { m: '100.00' } }, result: '100.50' },
  {
    text: '{{ inputs.day | add_time: 2, "weeks" }}',
    scope: { inputs: { day: '2026-01-31' } },
    result: '2026-02-14',
  },
]
