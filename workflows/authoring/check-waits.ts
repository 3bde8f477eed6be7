import { add, type Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { RECORD_EVENTS } from '../shared/events.ts'
import type { Graph } from './graph.ts'
import type { Lowered } from './lower.ts'

/** Warns about waits that end by what is not meant, or do not end by what is. */
export const checkWaits = (lowered: Lowered, graph: Graph): Problem[] => [
  ...waitsOfAnyRecord(lowered),
  ...waitsForThePast(lowered, graph),
]

/** A wait counts events from its beginning: one that a node before it has raised is not among them. */
function waitsForThePast({ definition, nodePath }: Lowered, graph: Graph): Problem[] {
  const raised = definition.nodes.flatMap(({ id, type, config }) => {
    const key = findNodeType(type)?.emits
    return key === undefined ? [] : [{ id, event: config[key] }]
  })
  if (raised.length === 0) return []
  return definition.nodes.flatMap(({ id, type, config }): Problem[] => {
    if (config.since === 'run_start') return []
    const awaited = (findNodeType(type)?.awaits(config) ?? []).map(({ event }) => event)
    if (awaited.length === 0) return []
    const before = raised.find((one) => awaited.includes(one.event) && graph.mayPrecede(one.id, id))
    if (!before) return []
    return [
      {
        code: 'event_before_wait',
        message: `${before.id} raises ${String(before.event).slice(0, 100)} before ${id} begins to wait: only a later one ends the wait`,
        path: `${nodePath(id)}/config/event`,
        node_id: id,
        hint: add('since: run_start'),
      },
    ]
  })
}

/** The event of any record ends the wait, where authors mean the record that the run is about. */
function waitsOfAnyRecord({ definition, nodePath }: Lowered): Problem[] {
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
