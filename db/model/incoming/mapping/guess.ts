import { TARGET_KINDS } from '../../../../workflows/shared/record-kinds.ts'
import {
  COMPANY_WORDS,
  normalise,
  PERSON_WORDS,
  SUBJECT_WORDS,
  SYNONYMS,
  UNRELATED_WORDS,
} from '../../records/synonyms.ts'
import { looksLikeEmail } from '../../records/values.ts'
import type { TargetKind } from '../types.ts'
import type { Leaf } from './leaves.ts'
import { subjectOf } from './question.ts'
import { belongsToCompany, fieldOf, targetNames } from './targets.ts'

/** A guess: the target of a value. The higher score wins. */
export interface Guess {
  field: string
  score: number
  because: Reason
}

/** A value with its guess. */
export interface Match extends Guess {
  leaf: Leaf
}

/** Why a value was taken: agx's own name of the field or a synonym of it, or what the sender is known to mean. */
export type Reason = 'own name' | 'synonym' | 'custom field' | 'opt-out' | 'sender'

/** Fields that only a person or company has: they count wherever they are. */
const PERSONAL = new Set(['email', 'phone', 'mobile_phone', 'first_name', 'last_name'])

/** Names that things have too. They count at the top, within the record, beside personal fields, and as answers. */
const AMBIGUOUS = new Set(
  [
    'name displayname first last nom nombre title position role url web site homepage website source state',
    'tag tags labels note notes comment comments message question body id status type',
  ].flatMap((names) => names.split(' ')),
)

/** Parents that say nothing of their content. */
export const WRAPPERS: ReadonlySet<string> = new Set(
  'data payload body event fields form properties attributes object record values namedvalues answers submission response responses result details entry item items current new after formresponse rawrequest hidden merges customattributes questionsandanswers leads records json content personal profile lead'.split(
    ' ',
  ),
)

/** Names of values that say what has happened, to what kind of object. */
const OF_EVENTS = new Set('event eventtype eventname webhookevent objecttype subscriptionid'.split(' '))

/** Whether a payload tells of an event, and is not what a person has filled in. */
export const isOfEvent = (leaves: Leaf[]): boolean =>
  leaves.some(
    ({ name, context: [outer, ...inner], isAnswer }) =>
      inner.length === 0 && isAnswer === undefined && (OF_EVENTS.has(name) || outer === 'event'),
  )

/** Guesses the targets of the values of one payload. */
export function guesser(leaves: Leaf[], kind: TargetKind): (leaf: Leaf) => Guess | undefined {
  const synonyms = SYNONYMS[kind]
  const persons = new Set(
    leaves.filter(({ name }) => PERSONAL.has(synonyms[name]?.field ?? '')).map(({ path }) => parentOf(path)),
  )
  // The `user_name` of an event is of a user of the sender, who may be ours, unless the user's address is there too.
  const isOfUser = isOfEvent(leaves) && leaves.every(({ name }) => name !== 'useremail')
  return (leaf) => (isOfUser && leaf.name === 'username' ? undefined : guess(leaf, kind, persons))
}

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('.')))

function guess(leaf: Leaf, kind: TargetKind, persons: ReadonlySet<string>): Guess | undefined {
  const has = (words: ReadonlySet<string>) => leaf.context.some((word) => words.has(word))
  if (has(UNRELATED_WORDS)) return undefined
  const name = baseName(leaf.name)
  if (belongsToCompany(kind) && has(COMPANY_WORDS)) {
    // Only the name of the company is mapped; its email and phone are not the contact's.
    return ['name', 'companyname', 'title'].includes(name)
      ? { field: 'company_name', score: 60, because: 'synonym' }
      : undefined
  }
  const ofTarget = has(SUBJECT_WORDS[kind])
  if ((has(PERSON_WORDS) || has(COMPANY_WORDS)) && !ofTarget) return undefined
  const found = named(leaf, name, kind) ?? asked(leaf, kind)
  if (!found || isImplausibleName(found.field, leaf)) return undefined
  if (!ofTarget && AMBIGUOUS.has(found.name) && isNoOption(found.field, leaf, kind)) return undefined
  if (!ofTarget && has(OTHER_SUBJECTS[kind]) && !PERSONAL.has(found.field)) return undefined
  const isClear =
    ofTarget ||
    leaf.isAnswer ||
    !AMBIGUOUS.has(found.name) ||
    leaf.context.every((word) => WRAPPERS.has(word)) ||
    persons.has(parentOf(leaf.path))
  if (kind === 'contacts' && !isClear) return undefined
  const score =
    found.score +
    (isPlausible(found.field, leaf.value, kind) ? 100 : 0) +
    (ofTarget ? 20 : 0) -
    leaf.context.length
  return { field: found.field, score, because: found.because }
}

/** Words of deals and tasks, where they are not the target: an issue's title is no job title. */
const OTHER_SUBJECTS = {
  contacts: new Set([...SUBJECT_WORDS.deals, ...SUBJECT_WORDS.tasks]),
  companies: new Set([...SUBJECT_WORDS.deals, ...SUBJECT_WORDS.tasks]),
  deals: SUBJECT_WORDS.tasks,
  tasks: SUBJECT_WORDS.deals,
}

/** The field with this name, or with a synonym of it. */
function named(leaf: Leaf, base: string, kind: TargetKind): (Guess & { name: string }) | undefined {
  const own = OWN[kind][leaf.name]
  if (own) return { field: own, name: leaf.name, score: 45, because: 'own name' }
  const synonyms = SYNONYMS[kind]
  const outer = leaf.context.at(-1) ?? ''
  // `name: {first, last}` is matched with the name of its parent.
  for (const [name, rank] of [
    [outer + leaf.name, 40],
    [baseName(outer) + leaf.name, 38],
    [leaf.name, 40],
    [base, 30],
    // `phone: {full}`
    [leaf.name === 'full' ? baseName(outer) : '', 38],
  ] as const) {
    const synonym = synonyms[name]
    if (synonym) return { field: synonym.field, name, score: rank - synonym.rank * 4, because: 'synonym' }
  }
  return undefined
}

/** The field that a question in words asks for. A yes to "May we email you?" is no address. */
function asked({ key, value }: Leaf, kind: TargetKind): (Guess & { name: string }) | undefined {
  const name = subjectOf(key)
  const synonym = name !== undefined && !VAGUE.has(name) ? SYNONYMS[kind][name] : undefined
  if (!synonym || !isPlausible(synonym.field, value, kind)) return undefined
  return { field: synonym.field, name: name!, score: 28 - synonym.rank * 4, because: 'synonym' }
}

/** Names of fields that mean something else in a question: "Is this your first?". */
const VAGUE = new Set('first last site web id type status state source'.split(' '))

/** For each kind: normalised name → field. */
const OWN = Object.fromEntries(
  TARGET_KINDS.map((kind) => [
    kind,
    Object.assign(
      Object.create(null),
      Object.fromEntries(targetNames(kind).map((name) => [normalise(name), name])),
    ),
  ]),
) as Record<TargetKind, Record<string, string | undefined>>

/** `your-email`, `contact_email` and `q4_email` mean `email`; `formTitle` does not mean `title`. */
function baseName(name: string): string {
  const base = name.replace(
    /^(q\d+|\d+)?(your|my|the|contact|customer|lead|client|person|user|subscriber|attendee|signer|buyer|guest|applicant|billing|form|field|input)?/,
    '',
  )
  return /^form./.test(name) && AMBIGUOUS.has(base) ? name : base
}

/** Roles and states of an account in the sender's system, and salutations. */
const ACCOUNT_ROLES =
  /^(customer|subscriber|administrator|admin|editor|author|contributor|user|end[-_ ]?user|member|guest|viewer|lead|shop_manager|student|teacher|owner)$/i
const ACCOUNT_STATES =
  /^(enabled|disabled|invited|declined|active|inactive|open|closed|pending|confirmed|verified|subscribed|unsubscribed)$/i
const SALUTATION = /^(mr|mrs|ms|miss|mx|dr|prof|herr|frau|mme|m|sr|sra)\.?$/i

/** Whether the value shows that the name means something else. */
function isImplausibleName(field: string, { name, value, context }: Leaf): boolean {
  const text = String(value)
  if (field === 'full_name' && !isName(text)) return true
  // The country of a phone number is none of an address.
  if (field.startsWith('address.') && isPersonal(context.at(-1) ?? '')) return true
  if (name === 'role') return ACCOUNT_ROLES.test(text)
  if (name === 'title') return field === 'job_title' && SALUTATION.test(text)
  if (field === 'address.state') return ACCOUNT_STATES.test(text)
  return field === 'note_content' && typeof value !== 'string'
}

const isPersonal = (name: string) => PERSONAL.has(SYNONYMS.contacts[name]?.field ?? '')

/** Whether a text may be the name of a person: of an unknown caller, a sender has the number in its place. */
export const isName = (text: string): boolean => /\p{Letter}/u.test(text)

/** Whether the value is none of the options of its field: the `type` of an event is not that of a company. */
function isNoOption(field: string, { value }: Leaf, kind: TargetKind): boolean {
  const { values, ofOrganization } = fieldOf(field, kind) ?? {}
  return !ofOrganization && values !== undefined && optionNamed(String(value), values) === undefined
}

/** The option of this name, compared as names of fields are: `In Progress` is `in_progress`. */
export const optionNamed = (text: string, options: readonly string[]): string | undefined =>
  options.find(
    (option) =>
      option ===
      text
        .trim()
        .toLowerCase()
        .replace(/[\s-]+/g, '_'),
  )

/** Whether the parents of a value are the record itself, or say nothing. */
export const isOfRecord = (context: string[], kind: TargetKind): boolean =>
  context.every((word) => WRAPPERS.has(word) || SUBJECT_WORDS[kind].has(word))

/** An implausible value is used only if there is no better one. */
function isPlausible(field: string, value: Leaf['value'], kind: TargetKind): boolean {
  if (field === 'email') return looksLikeEmail(String(value))
  if (field === 'phone' || field === 'mobile_phone') return (String(value).match(/\d/g)?.length ?? 0) >= 5
  return typeof value !== 'boolean' || fieldOf(field, kind)?.type === 'boolean'
}
