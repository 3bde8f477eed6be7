/**
 * A valid spec of `count` nodes, as authors write them: blocks of five that search, decide, write, call and mail, each
 * of which reads nodes before it. About 190 bytes per node.
 */
export function longSpec(count: number): string {
  const nodes: string[] = []
  for (let block = 0; nodes.length < count; block++) nodes.push(...blockOf(block))
  const ids = nodes.slice(0, count)
  return `name: A long workflow
description: What happens with an order of a shop, from the contact to the mail.
trigger: {type: event, events: [contact.created]}
inputs:
  minimum: {type: number, default: 100}
nodes:
${ids.join('\n')}
outputs:
  first: "{{ nodes.find_0.output.data }}"
`
}

const blockOf = (at: number): string[] => [
  `  find_${at}:
    type: crm_manager
    config:
      operation: search
      entity: deals
      filters: {stage: won, "amount[gte]": "{{ inputs.minimum }}"${at > 0 ? `, name: "{{ nodes.keep_${at - 1}.output.name }}"` : ''}}
      limit: 20`,
  `  pick_${at}:
    type: filter_items
    config:
      items: "{{ nodes.find_${at}.output.data }}"
      conditions: [{field: currency, operator: eq, right: EUR}]`,
  `  note_${at}:
    type: crm_manager
    # Somebody looks at it on Monday.
    config:
      operation: create
      entity: tasks
      fields:
        title: "Look at {{ nodes.pick_${at}.output.items | size }} deals of {{ trigger.record.email }}"
        body: |
          They were found by the workflow.
          Please call {{ trigger.record.first_name | default: "the contact" }}.
        priority: high`,
  `  tell_${at}:
    type: api_request
    config:
      method: POST
      url: "https://api.example.com/deals/${at}"
      headers: {X-Source: agx}
      body: {task: "{{ nodes.note_${at}.output.id }}", count: "{{ nodes.pick_${at}.output.items | size }}"}
    retry: {max_attempts: 3, initial_interval: 2s}
    on_error: continue`,
  `  keep_${at}:
    type: set_fields
    config:
      fields:
        status: "{{ nodes.tell_${at}.output.status | default: 0 }}"
        name: "{{ trigger.record.first_name }} {{ trigger.record.last_name | upcase }}"`,
]

/**
 * A valid spec of `count` light nodes, each of which adds to the number of the previous one. About 90 bytes per node.
 */
export function lightSpec(count: number): string {
  const later = Array.from(
    { length: count - 1 },
    (_, at) =>
      `  n_${at + 2}: {type: set_fields, config: {fields: {sum: "{{ nodes.n_${at + 1}.output.sum | plus: 1 }}"}}}`,
  )
  return `name: Two thousand steps
nodes:
  n_1: {type: set_fields, config: {fields: {sum: 1}}}
${later.join('\n')}
outputs: {sum: "{{ nodes.n_${count}.output.sum }}"}
`
}
