import { PERSON_WORDS } from '../../records/synonyms.ts'
import { firstCharacters, looksLikeEmail } from '../../records/values.ts'
import { type Match, WRAPPERS } from './guess.ts'

/** Fields that say who somebody is, and how to reach them. */
const PERSONAL = new Set(['email', 'full_name', 'first_name', 'last_name', 'phone', 'mobile_phone'])

/** Fields that things have too: the title, time zone and place beside an attendee belong to the meeting. */
const isOfThings = (field: string) =>
  ['job_title', 'website', 'timezone'].includes(field) || field.startsWith('address.')

/** Objects with a name or an address: each is compared with each. */
const MAX_GROUPS = 200

/** What a warning names: so many people, by paths of so many characters. */
const MAX_NAMED = 3
const MAX_PATH = 200

/** The values of one object that speak of a person. */
interface Group {
  matches: Match[]
  emails: Set<string>
  phones: Set<string>
  /** The words of the name. */
  name: Set<string>
  rank: number
  /** Its item of a list of people. */
  item?: string | undefined
}

/** A user of the sender may be one of ours: who has a role beside one is theirs. */
const USERS = new Set(['user', 'users'])

/** How much the parents of a value say that it is of the record: a role such as `attendee`, `user`, nothing, another word. */
const rankOf = (context: string[]): number => {
  if (context.some((word) => PERSON_WORDS.has(word) && !USERS.has(word))) return ROLE
  if (context.some((word) => USERS.has(word))) return USER
  return context.every((word) => WRAPPERS.has(word)) ? 1 : 0
}
const ROLE = 3
const USER = 2

/**
 * The values that speak of the person of a contact, without those of other people in the payload. If two people are equally
 * near, as two items of a list are, none is chosen, with a warning: a wrong person is worse than none. Pure.
 * @param lists the paths of lists of which each item is a person.
 * @param ours the emails of people whose role is ours: an organizer is often one of the attendees too.
 * @param isEvent whether the payload tells of an event: a name alone is that of a thing there, such as the webhook.
 */
export function ofOnePerson(
  found: Match[],
  lists: ReadonlySet<string> = new Set(),
  ours: ReadonlySet<string> = new Set(),
  isEvent = false,
): { found: Match[]; ambiguous?: string } {
  const itemOf = ({ leaf: { entry } }: Match) =>
    entry && lists.has(entry.list) ? `${entry.list}[${entry.index}]` : undefined
  const groups = groupsOf(found, itemOf)
  if (groups.length > MAX_GROUPS)
    return {
      found: found.filter(({ field }) => !PERSONAL.has(field)),
      ambiguous: `the payload has more than ${MAX_GROUPS} objects that may be people: none was used`,
    }
  const people = withoutOurs(candidates(isEvent ? groups : withoutSignedIn(groups)), ours)
  const [person, ...others] = people
  if (!person) {
    const things = isEvent ? groups.filter((group) => group.rank < ROLE && isNameOfThing(group)) : []
    return { found: found.filter((match) => !things.some(({ matches }) => matches.includes(match))) }
  }
  if (others.length > 0)
    return {
      found: found.filter(
        (match) =>
          !itemOf(match) &&
          !PERSONAL.has(match.field) &&
          !isOfThings(match.field) &&
          !people.flat().some((group) => isOf(match, group)),
      ),
      ambiguous: warningOf(people),
    }
  const strangers = groups.filter((group) => !person.includes(group) && isOther(group, person))
  const items = new Set<string | undefined>([undefined, ...person.map(({ item }) => item)])
  return {
    found: found.filter(
      (match) =>
        items.has(itemOf(match)) && isNear(match, person) && !strangers.some((group) => isOf(match, group)),
    ),
  }
}

/** In a form, who has filled it in is at the top, and a `user` beside them is who was signed in: often one of ours. */
function withoutSignedIn(groups: Group[]): Group[] {
  const others = groups.filter(({ rank }) => rank !== USER)
  return candidates(others).some(([group]) => group!.rank > 0) ? others : groups
}

/** Leaves our own people out of several; returns all of them if nobody else is there. */
function withoutOurs(people: Group[][], ours: ReadonlySet<string>): Group[][] {
  const isOurs = (person: Group[]) => person.some(({ emails }) => [...emails].some((one) => ours.has(one)))
  const theirs = people.length > 1 ? people.filter((person) => !isOurs(person)) : people
  return theirs.length > 0 ? theirs : people
}

/** Whether a value is of the person, where things have such values too: it is in the same object, or an answer. */
function isNear({ field, leaf }: Match, person: Group[]): boolean {
  if (!isOfThings(field)) return true
  const isInside = person.some(({ matches: [first] }) =>
    `${leaf.holder}.`.startsWith(first!.leaf.holder && `${first!.leaf.holder}.`),
  )
  if (isInside || field === 'job_title' || field === 'website') return isInside
  if (leaf.isAnswer) return true
  // An address beside the person, as of an order, but not that of the place of a booking.
  const around = new Set(person.flatMap(({ matches: [first] }) => first!.leaf.context))
  const { context } = leaf
  return (
    context.some((word) => OF_ADDRESSES.test(word)) &&
    context.every((word) => OF_ADDRESSES.test(word) || WRAPPERS.has(word) || around.has(word))
  )
}

const OF_ADDRESSES =
  /^(billing|shipping|delivery|mailing|postal|invoice|customer|contact|home|work|default|primary)?(address(es)?|details|info)?$/

function groupsOf(found: Match[], itemOf: (match: Match) => string | undefined): Group[] {
  const groups = new Map<string, Group>()
  for (const match of found) {
    if (!PERSONAL.has(match.field)) continue
    const { holder, context, value } = match.leaf
    const group = groups.get(holder) ?? {
      matches: [],
      emails: new Set(),
      phones: new Set(),
      name: new Set(),
      rank: 0,
      item: itemOf(match),
    }
    groups.set(holder, group)
    // `name: {first}` is a part of what is around it.
    group.rank = Math.max(group.rank, rankOf(context))
    group.matches.push(match)
    const text = String(value).trim().toLowerCase()
    if (match.field === 'email') {
      if (looksLikeEmail(text)) group.emails.add(text)
    } else if (match.field.endsWith('phone')) group.phones.add(text.replace(/\D/g, ''))
    else for (const word of text.split(/[\s,]+/)) group.name.add(word)
  }
  return [...groups.values()]
}

/** The people who are nearest to the record, each with the groups of values that are of the same person. */
function candidates(groups: Group[]): Group[][] {
  const hasEmails = groups.some(({ emails }) => emails.size > 0)
  const named = groups.filter(({ emails, phones, name, item, rank }) =>
    // A list of people may have only the names of some.
    // The contact of a call has a number, and the agent beside them an address.
    item
      ? emails.size + phones.size + name.size
      : hasEmails && rank < ROLE
        ? emails.size
        : emails.size + phones.size * name.size,
  )
  const nearest = Math.max(...named.map((group) => group.rank))
  const people: Group[][] = []
  for (const group of named.filter((one) => one.rank === nearest)) {
    const same = people.find((person) => person.some((one) => isSame(one, group)))
    if (same) same.push(group)
    else people.push([group])
  }
  return people
}

/** Whether two groups have an address in common: an email, else a phone number, else the name. */
function isSame(one: Group, other: Group): boolean {
  if (one.emails.size * other.emails.size > 0) return overlap(one.emails, other.emails)
  if (one.phones.size * other.phones.size > 0) return overlap(one.phones, other.phones)
  const isNamed = one.name.size * other.name.size > 0
  return isNamed && (isPart(one.name, other.name) || isPart(other.name, one.name))
}

/** Whether a group has an address or a name of its own, which is not the person's. */
function isOther(group: Group, person: Group[]): boolean {
  if (group.emails.size > 0) return !person.some((one) => overlap(one.emails, group.emails))
  const named = person.filter(({ name }) => name.size > 0)
  if (group.name.size === 0) return false
  // A thing around the person has a name too.
  if (named.length === 0)
    return group.rank < USER && isNameOfThing(group) && person.every(({ rank }) => rank < ROLE)
  return named.every(
    (one) => !isPart(one.name, group.name) && !isPart(group.name, one.name) && !completes(one, group),
  )
}

/** Whether two names are parts of one: a first name, and a last name among the fields of the same object. */
function completes(one: Group, other: Group): boolean {
  const fields = (group: Group) =>
    group.matches.map(({ field }) => field).filter((field) => field.endsWith('_name'))
  const inner = other.matches[0]!.leaf.holder
  const outer = one.matches[0]!.leaf.holder
  const isWithin = outer === '' || inner.startsWith(`${outer}.`)
  return (
    isWithin &&
    ![...fields(one), 'full_name'].some((field) => fields(other).includes(field)) &&
    !fields(one).includes('full_name')
  )
}

/** Whether all that a group says is a plain `name`, as a form, a document or a webhook has one. */
const isNameOfThing = ({ matches }: Group): boolean =>
  matches.every(({ leaf }) => leaf.name === 'name' && leaf.isAnswer === undefined)

const overlap = (some: Set<string>, others: Set<string>) => [...some].some((one) => others.has(one))

const isPart = (some: Set<string>, all: Set<string>) => [...some].every((word) => all.has(word))

/** An object without a role of its own gives the person only its personal values. */
const isOf = ({ field, leaf }: Match, { matches: [first], rank }: Group): boolean =>
  leaf.holder === first!.leaf.holder && (rank !== 1 || PERSONAL.has(field))

function warningOf(people: Group[][]): string {
  const paths = people.slice(0, MAX_NAMED).map(([group]) => {
    const { matches } = group!
    const { leaf } = matches.find(({ field }) => field === 'email') ?? matches[0]!
    return firstCharacters(leaf.path, MAX_PATH)
  })
  return `${paths.join(' and ')} name different people: none was used; choose one by a mapping rule`
}
