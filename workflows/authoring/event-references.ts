import type { EventReference } from '../language/definition.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { pointer } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { EVENT_NAME, EVENTS, misspelt } from '../shared/events.ts'
import { cancelSpecs } from './cancel-on.ts'
import type { Lowered } from './lower.ts'

/**
 * The events that a definition waits for and that are not in the catalogue, but for those that a node of it raises: only
 * another workflow can raise them. Names that are reported already are left out.
 */
export function eventReferences({ definition, nodePath }: Lowered): EventReference[] {
  const { trigger, nodes, settings } = definition
  const listed = (events: string | string[], path: string) =>
    Array.isArray(events)
      ? events.map((event, index) => ({ event, path: `${path}/${index}` }))
      : [{ event: events, path }]
  const awaited: { event: unknown; path: string; node_id?: string }[] = [
    ...(trigger.type === 'event' ? listed(trigger.events, '/trigger/events') : []),
    ...cancelSpecs(settings).flatMap(({ spec, path }) => listed(spec.event, `${path}/event`)),
    ...nodes.flatMap(({ id, type, config }) =>
      (findNodeType(type)?.awaits(config) ?? []).map(({ event, path }) => ({
        event,
        path: `${nodePath(id)}/config${pointer(...path)}`,
        node_id: id,
      })),
    ),
  ]
  // Without kinds of records: their events are in the catalogue.
  const own = new Set(
    nodes.flatMap(({ type, config }) => findNodeType(type)?.raises(config, { entities: {} }).events ?? []),
  )
  return awaited.flatMap(({ event, ...place }) =>
    typeof event === 'string' && isCustom(event) && !own.has(event) ? [{ event, ...place }] : [],
  )
}

const isCustom = (event: string) =>
  !hasPlaceholder(event) &&
  EVENT_NAME.test(event) &&
  !EVENTS.some(({ name }) => name === event) &&
  misspelt(event) === undefined
