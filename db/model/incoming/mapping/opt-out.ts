import { OPT_OUT_NAMES, OPT_OUT_TIMES } from '../../records/opt-out.ts'
import { UNRELATED_WORDS } from '../../records/synonyms.ts'
import type { Leaf } from './leaves.ts'

/** Normalised names of what happened to a subscriber. */
const EVENTS = new Set(
  'type event eventtype eventname action topic status subscriptionstatus emailstatus'.split(' '),
)
const EVENT =
  /(^|[._\-/: ])(unsubscribed?([-_ ]from[-_ a-z]*)?|opt(ed)?[-_ ]?out|spam[-_ ]?(report|complaint)|complained)$/i

/** Whether a value says that the person must not be contacted. A no is not the opposite: it says nothing. */
export function saysOptOut({ name, value, context }: Leaf): boolean {
  if (context.some((word) => UNRELATED_WORDS.has(word))) return false
  const text = String(value)
  if (OPT_OUT_NAMES.has(name)) return /^(true|yes|y|on|1|ja|oui|si|sí)$/i.test(text)
  if (OPT_OUT_TIMES.has(name)) return /\d{4}/.test(text)
  return EVENTS.has(name) && context.length <= 2 && EVENT.test(text)
}
