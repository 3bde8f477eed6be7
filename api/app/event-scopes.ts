import type { Scope } from '../../db/model/access/scopes.ts'
import { type CatalogueEvent, selectedBy } from '../../workflows/shared/events.ts'
import { kindNames, RECORD_KINDS } from '../../workflows/shared/record-kinds.ts'

/** For the reference. */
export const NEEDS_EVENTS =
  'A key also needs the scopes to read the data of the events: `contacts:read` for `contact.*`, `workflows:run` for events of workflows.'

/**
 * The scopes that reading the data of events needs, so that a key cannot subscribe to what it must not read.
 * @param patterns names of events, `contact.*`, `*`.
 */
export function scopesOfEvents(patterns: readonly string[]): Scope[] {
  const needed = patterns.flatMap((pattern) => {
    const selected = selectedBy(pattern)
    // The pattern can match custom events, which any node may raise.
    return selected.length === 0 ? (['workflows:run'] as const) : selected.flatMap(scopesOf)
  })
  return [...new Set(needed)]
}

function scopesOf({ subject }: CatalogueEvent): Scope[] {
  if (subject === 'webhook') return []
  // The record of a membership is of any kind.
  if (subject === 'list_membership') return kindNames.map((name): Scope => `${name}:read`)
  const kind = kindNames.find((name) => RECORD_KINDS[name] === subject)
  // Other events contain results of a run, so they need the scope that reads the run.
  return [kind ? `${kind}:read` : 'workflows:run']
}
