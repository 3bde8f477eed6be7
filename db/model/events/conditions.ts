import { evaluateWhen } from '../../../workflows/interpret/when.ts'
import type { Scope } from '../../../workflows/language/expressions/liquid.ts'
import type { NodeError } from '../../../workflows/language/node-error.ts'
import { TRIGGER_WHEN } from '../../../workflows/shared/limits.ts'
import { createTurns } from '../../../workflows/shared/turns.ts'
import type { EventKey } from './event.ts'

/** An event with a subscriber's condition; null: no condition. */
export interface Conditional extends EventKey {
  when: string | null
}

/** Time limit, in milliseconds, for the conditions of one batch, whose transaction must not stay open for long. */
export const BUDGET_MS = 250
/** Number of events whose data is loaded at once. */
const CHUNK = 50

/**
 * Evaluates the conditions of a batch within a time limit.
 * @param entries in the order of the events.
 * @param load returns the values that conditions on these events can read, by event id.
 * @param visit gets each entry and whether its condition holds.
 * @param isFull whether the batch has no room for another event.
 * @returns the first event that is left for the next batch; undefined if there is none.
 */
export async function evaluateConditions<T extends Conditional>(
  entries: T[],
  load: (events: EventKey[]) => Promise<Map<string, Scope>>,
  visit: (entry: T, holds: boolean | NodeError) => void,
  isFull = () => false,
): Promise<string | undefined> {
  const conditional = entries.filter(({ when }) => when !== null)
  const events = [...new Map(conditional.map((one) => [one.event_id, one])).values()]
  let scopes = new Map<string, Scope>()
  let loaded = 0
  const turn = createTurns()
  let spent = 0
  let before: string | undefined
  for (const entry of entries) {
    const { when, event_id } = entry
    // Stops only between events, because the batch puts back whole events.
    if ((spent >= BUDGET_MS || isFull()) && event_id !== before) return event_id
    before = event_id
    if (when === null) {
      visit(entry, true)
      continue
    }
    if (!scopes.has(event_id)) {
      scopes = await load(events.slice(loaded, loaded + CHUNK))
      loaded += CHUNK
    }
    await turn()
    const begun = performance.now()
    const scope = scopes.get(event_id)
    visit(entry, !scope || evaluateWhen(when, scope, TRIGGER_WHEN))
    spent += performance.now() - begun
  }
  return undefined
}
