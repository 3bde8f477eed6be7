import { SUBJECT_WORDS } from '../../records/synonyms.ts'
import type { TargetKind } from '../types.ts'
import type { Leaf } from './leaves.ts'
import { spaced } from './opt-out.ts'

/** Normalised names of what has happened. A `topic` of other senders may be chosen in a form. */
const EVENTS = new Set('event eventtype eventname webhookevent action type'.split(' '))

const DELETED = new Set('delete deleted deletion destroyed redact redacted erased'.split(' '))

/** What senders call a record of the kind, besides its other names. */
const OTHER_NAMES: Partial<Record<TargetKind, string[]>> = {
  contacts: ['profile', 'member'],
  tasks: ['item', 'pulse'],
}

/**
 * Whether a payload tells that a record of the kind was deleted, as `customer.deleted` and `delete_pulse` do: it would come
 * back, or be made of a request to erase it. An order that was deleted says something of its customer. What a person has
 * written in a form ("Delete profile") tells nothing: the person must be answered.
 */
export const tellsDeletion = (all: Leaf[], kind: TargetKind, isKnownSender: boolean): boolean =>
  all.some(
    ({ name, value, context, isAnswer }) =>
      isAnswer === undefined &&
      context.length <= 1 &&
      (EVENTS.has(name) || (isKnownSender && name === 'topic')) &&
      isDeletion(String(value), kind),
  )

function isDeletion(text: string, kind: TargetKind): boolean {
  // The name of an event is short, and one word to a machine.
  const words =
    text.length > 100 || /\s/.test(text.trim())
      ? []
      : spaced(text)
          .toLowerCase()
          .split(/[^a-z]+/)
  const isSubject = (word = '') =>
    SUBJECT_WORDS[kind].has(word) || OTHER_NAMES[kind]?.includes(word.replace(/s$/, '')) === true
  const [first = '', second, ...others] = words
  return (
    (DELETED.has(words.at(-1) ?? '') && isSubject(words.at(-2))) ||
    (DELETED.has(first) && isSubject(second) && others.length === 0)
  )
}
