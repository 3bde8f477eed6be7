import { add, type Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { RECORD_EVENTS } from '../shared/events.ts'
import type { Lowered } from './lower.ts'

/** Warns about waits that the event of any record ends: authors mean the record that the run is about. */
export function checkWaits({ definition, nodePath }: Lowered): Problem[] {
  const { trigger } = definition
  const started = trigger.type === 'event' ? trigger.events.map(kindOf) : []
  return definition.nodes.flatMap(({ id, type, config }): Problem[] => {
    if (config.record_id !== undefined || config.when !== undefined) return []
    const awaited = (findNodeType(type)?.awaits(config) ?? []).find(({ event }) =>
      RECORD_EVENTS.includes(String(event)),
    )
    if (!awaited) return []
    const event = String(awaited.event)
    const kind = kindOf(event)
    return [
      {
        code: 'constant_when',
        message: `${event} of any ${kind} ends the wait of ${id}, not only that of the ${kind} that the run is about`,
        path: `${nodePath(id)}/config/event`,
        node_id: id,
        hint: started.includes(kind)
          ? add('record_id: "{{ trigger.record.id }}"')
          : `add \`record_id: …\`, the id of the ${kind}, or a \`when\`: \`when: "{{ event.record.… == … }}"\``,
      },
    ]
  })
}

const kindOf = (event: string) => event.split('.')[0]!
