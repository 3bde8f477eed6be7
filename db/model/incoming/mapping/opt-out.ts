import { OPT_OUT_NAMES, OPT_OUT_TIMES } from '../../records/opt-out.ts'
import { UNRELATED_WORDS } from '../../records/synonyms.ts'
import type { Leaf } from './leaves.ts'

/** Normalised names of what happened to a subscriber. */
const EVENTS = new Set(
  'type event eventtype eventname action topic status subscriptionstatus emailstatus'.split(' '),
)
const EVENT =
  /(^|[._\-/: ])(un[-_ ]?subscribed?([-_ ]from[-_ a-z]*)?|opt(ed)?[-_ ]?out|spam[-_ ]?(report|complaint)|complained)$/i
/** Also said of other things in a form: of one only as the name of an event, or as one word such as `AbuseReport`. */
const COMPLAINT =
  /(^|[._\-/: ])(spam[-_ ]?reported|abuse[-_ ]?(report(ed)?|complaint)|e?mail[-_ ]?complaint)$/i
const ONE_WORD_IN = new Set('type status'.split(' '))
/** Short names of events. As a `type` or a `status` they may be of something else, such as a form that was sent. */
const SHORT = /^(unsub|spam)$/i
const SHORT_IN = new Set('event eventtype eventname action'.split(' '))

/** `emailsUnsubscribed` is written as `emails Unsubscribed`. */
export const spaced = (text: string) =>
  text.replace(/(\p{Lowercase_Letter})(\p{Uppercase_Letter})/gu, '$1 $2')

/** Whether a value says that the person must not be contacted. A no is not the opposite: it says nothing. */
export function saysOptOut({ name, value, context }: Leaf): boolean {
  if (context.some((word) => UNRELATED_WORDS.has(word))) return false
  const text = String(value)
  if (OPT_OUT_NAMES.has(name)) return /^(true|yes|y|on|1|ja|oui|si|sí)$/i.test(text)
  if (OPT_OUT_TIMES.has(name)) return /\d{4}/.test(text)
  if (context.length > 2) return false
  return (
    (EVENTS.has(name) && EVENT.test(spaced(text))) ||
    (mayComplain(name, text) && COMPLAINT.test(spaced(text))) ||
    (SHORT_IN.has(name) && SHORT.test(text))
  )
}

const mayComplain = (name: string, text: string) =>
  SHORT_IN.has(name) || (ONE_WORD_IN.has(name) && /^\p{L}+$/u.test(text))
