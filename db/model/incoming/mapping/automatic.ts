import { splitName } from '../../records/split-name.ts'
import { UNRELATED_WORDS } from '../../records/synonyms.ts'
import { looksLikeEmail } from '../../records/values.ts'
import { entityOf } from '../target-entity.ts'
import type { TargetKind } from '../types.ts'
import { tellsDeletion } from './deletion.ts'
import { guesser, isName, isOfEvent, isOfRecord, type Match, optionNamed } from './guess.ts'
import { type Leaf, leaves } from './leaves.ts'
import { ofOnePerson } from './one-person.ts'
import { saysOptOut } from './opt-out.ts'
import { valueAt } from './path.ts'
import { senderOf } from './senders/index.ts'
import type { KnownPaths, Sender, SenderRequest } from './senders/types.ts'
import { customFieldOf, fieldOf, typed } from './targets.ts'
import { zoneNamed } from './time-zone.ts'
import type { Mapped } from './types.ts'

/**
 * Maps the values of a known sender by their paths, all others by their names, at any depth: first agx's own names of
 * fields, then synonyms. If several values match a field, the better name wins, then the value within the target (the
 * person of a contact), then the shallower value, then the first. From a list of records it uses the first, with a
 * warning; of a list of people nobody. Pure and deterministic.
 * @param chosen the sender of the webhook, as in `senderOf`.
 */
export function mapAutomatically(
  payload: unknown,
  kind: TargetKind,
  headers: SenderRequest['headers'] = {},
  all: Leaf[] = leaves(payload),
  chosen?: string | null,
): Mapped {
  const { sender, skip, best, tags, custom, warnings } = matchesOf(payload, kind, headers, all, chosen)
  const known = sender ? { sender } : {}
  if (skip !== undefined) return { fields: {}, sources: {}, ...known, skip }
  const mapped = assemble(best, tags, custom, kind)
  return { ...mapped, ...known, ...(warnings.length > 0 ? { warnings } : {}) }
}

/** What automatic mapping takes from a payload. */
export interface Matches {
  /** The name of the known sender. */
  sender?: string
  /** Why there is nothing to take. */
  skip?: string
  /** By field, also `full_name`. */
  best: Map<string, Match>
  tags: Match[]
  custom: Match[]
  warnings: string[]
}

export function matchesOf(
  payload: unknown,
  kind: TargetKind,
  headers: SenderRequest['headers'],
  all: Leaf[],
  chosen?: string | null,
): Matches {
  const request = { headers, payload: payload as SenderRequest['payload'] }
  const sender = typeof payload === 'object' && payload !== null ? senderOf(request, chosen) : undefined
  const best = new Map<string, Match>()
  const tags: Match[] = []
  const custom: Match[] = []
  const known = sender ? { sender: sender.name } : {}
  const skip =
    (sender && skipped(sender, request)) ??
    (tellsDeletion(all, kind, sender !== undefined) ? deletionOf(kind) : undefined)
  if (skip !== undefined) return { ...known, skip, best, tags, custom, warnings: [] }
  const matches = withoutStates(matchesIn(sender ? within(all, sender) : all, kind))
  const firstIndexes = firstRecords(matches)
  const people = kind === 'contacts' ? listsOfPeople(matches, firstIndexes) : new Set<string>()
  const first = matches.filter(
    ({ leaf: { entry } }) =>
      !entry || people.has(entry.list) || (firstIndexes.get(entry.list) ?? entry.index) === entry.index,
  )
  const { found, ambiguous } =
    kind === 'contacts' ? ofOnePerson(first, people, emailsOfOurs(all), isOfEvent(all)) : { found: first }
  for (const match of found) {
    if (match.field === 'tags') tags.push(match)
    else if (match.field.startsWith('custom_fields.')) custom.push(match)
    else if (match.score > (best.get(match.field)?.score ?? 0)) best.set(match.field, match)
  }
  const ofSender = sender ? knownIn(payload, pathsOf(sender, request, kind)) : []
  for (const match of ofSender) {
    if (match.field === 'tags') tags.push(match)
    else best.set(match.field, match)
  }
  if (sender?.optsOut?.(request) && fieldOf('do_not_contact', kind))
    best.set('do_not_contact', {
      field: 'do_not_contact',
      score: KNOWN,
      because: 'opt-out',
      leaf: leafAt('type', true),
    })
  const lists = new Set([...best.values()].map(({ leaf }) => leaf.entry?.list))
  const warnings = [...firstIndexes]
    .filter(([list]) => lists.has(list) && !people.has(list))
    .map(([list, index]) => `${list} has several records: only ${list}[${index}] was used`)
  // Where the sender has a path to the person, nobody had to be chosen.
  if (ambiguous && !ofSender.some(({ field }) => IDENTITY.has(field))) warnings.push(ambiguous)
  return { ...known, best, tags, custom, warnings }
}

const deletionOf = (kind: TargetKind) => `the payload tells of the deletion of a ${entityOf(kind)}`

function skipped(sender: Sender, request: SenderRequest): string | undefined {
  if (sender.isPing?.(request)) return `ping of ${sender.name}`
  return sender.isNotice?.(request)
    ? `notification of ${sender.name} without the data of a record`
    : undefined
}

/** The score of what the sender is known to mean. */
const KNOWN = 1_000

const leafAt = (path: string, value: Leaf['value']): Leaf => ({
  name: '',
  key: '',
  context: [],
  holder: '',
  path,
  value,
})

/** The values whose names the account's owner chose. */
const within = (all: Leaf[], { guessIn = [] }: Sender) =>
  guessIn === 'anywhere'
    ? all
    : all.filter(({ path }) =>
        guessIn.some((part) => path.startsWith(part) && /^[.[]/.test(path.slice(part.length))),
      )

function knownIn(payload: unknown, paths: KnownPaths): Match[] {
  return Object.entries(paths).flatMap(([field, candidates]) => {
    for (const path of candidates) {
      const value = valueAt(payload, path)
      const scalar = Array.isArray(value) ? value.filter((one) => typeof one !== 'object').join(',') : value
      if (field === 'full_name' && !isName(String(scalar))) continue
      if (['string', 'number', 'boolean'].includes(typeof scalar) && String(scalar).trim() !== '')
        return [{ field, score: KNOWN, because: 'sender', leaf: leafAt(path, scalar as Leaf['value']) }]
    }
    return []
  })
}

export function matchesIn(all: Leaf[], kind: TargetKind): Match[] {
  const guess = guesser(all, kind)
  const mayOptOut = fieldOf('do_not_contact', kind) !== undefined
  return all.flatMap((leaf) => {
    const to = customTarget(leaf, kind)
    if (to) return [{ leaf, field: to, score: KNOWN, because: 'custom field' }]
    // Wins over a no: an opt-out must not be lost.
    if (mayOptOut && saysOptOut(leaf))
      return [{ leaf: { ...leaf, value: true }, field: 'do_not_contact', score: KNOWN, because: 'opt-out' }]
    const match = guess(leaf)
    return match ? [{ leaf, ...match }] : []
  })
}

/** `custom_fields: {tier}` of the record, and `custom_fields.tier` as one name. */
function customTarget({ key, context }: Leaf, kind: TargetKind): string | undefined {
  const isMember = context.at(-1) === 'customfields'
  const to = isMember ? `custom_fields.${key}` : key
  if (customFieldOf(to) === undefined) return undefined
  return isOfRecord(isMember ? context.slice(0, -1) : context, kind) ? to : undefined
}

/** Identifying fields: a list in which two entries have the same one is a list of records. */
const IDENTITY = new Set(['email', 'full_name', 'first_name', 'last_name', 'name', 'title', 'external_id'])

/** The index of the first record in each list of records: the result must not mix several records. */
function firstRecords(matches: Match[]): Map<string, number> {
  const first = new Map<string, number>()
  const seen = new Map<string, Map<string, number>>()
  for (const { leaf, field } of matches) {
    if (!leaf.entry || !IDENTITY.has(field)) continue
    const { list, index } = leaf.entry
    const fields = seen.get(list) ?? new Map<string, number>()
    seen.set(list, fields)
    const before = fields.get(field)
    if (before === undefined) fields.set(field, index)
    else if (before !== index && !first.has(list)) first.set(list, Math.min(...fields.values()))
  }
  return first
}

/** The emails of people whose role is ours. */
const emailsOfOurs = (all: Leaf[]): Set<string> =>
  new Set(
    all
      .filter(({ context }) => context.some((word) => UNRELATED_WORDS.has(word)))
      .map(({ value }) => String(value).toLowerCase())
      .filter(looksLikeEmail),
  )

/** A name of a place, not the state of a thing: `CA`, `California`. */
const PLACE = /^([A-Z]{2,3}|\p{Lu}\p{Ll}.*)$/u
const STATE_OF_A_THING =
  /^(new|done|completed?|cancell?ed|closed|deleted|archived|expired|failed|approved|rejected|draft|sent|paid|unpaid|bounced|complained|ringing|connected|hangup|finished|created|updated|resolved|ok)$/i

/** Without each `state` of which neither another part of an address beside it, nor its form, says that it is of one. */
function withoutStates(matches: Match[]): Match[] {
  const isState = ({ field, leaf }: Match) =>
    field === 'address.state' && leaf.name === 'state' && leaf.isAnswer === undefined
  const addresses = new Set(
    matches
      .filter((match) => match.field.startsWith('address.') && !isState(match))
      .map(({ leaf }) => leaf.holder),
  )
  return matches.filter((match) => {
    if (!isState(match) || addresses.has(match.leaf.holder)) return true
    const text = String(match.leaf.value)
    return PLACE.test(text) && !STATE_OF_A_THING.test(text)
  })
}

/** The lists of several records whose items are people each: not one of the addresses of one person. */
const listsOfPeople = (matches: Match[], firstIndexes: ReadonlyMap<string, number>): Set<string> =>
  new Set(
    matches.flatMap(({ leaf: { entry, holder }, field }) =>
      entry && IDENTITY.has(field) && firstIndexes.has(entry.list) && holder.startsWith(`${entry.list}[`)
        ? [entry.list]
        : [],
    ),
  )

function assemble(best: Map<string, Match>, tags: Match[], custom: Match[], kind: TargetKind): Mapped {
  const fields: Record<string, unknown> = {}
  const sources: Record<string, string> = {}
  const address: Record<string, string> = {}
  const extra: Pick<Mapped, 'company_name' | 'note'> = {}
  let fullName: Leaf | undefined
  for (const [field, { leaf }] of best) {
    const text = String(leaf.value).trim()
    if (field === 'full_name') {
      fullName = leaf
      continue
    }
    sources[field] = leaf.path
    if (field === 'company_name') extra.company_name = text
    else if (field === 'note_content') extra.note = text
    else if (field.startsWith('address.')) address[field.slice('address.'.length)] = text
    else fields[field] = guessed(text, field, kind)
  }
  if (kind === 'contacts' && fullName && !(fields.first_name && fields.last_name)) {
    for (const [field, part] of Object.entries(splitName(String(fullName.value))))
      if (fields[field] === undefined) {
        fields[field] = part
        sources[field] = fullName.path
      }
  }
  if (Object.keys(address).length > 0) fields.address = address
  const words = tags
    .flatMap(({ leaf }) => String(leaf.value).split(','))
    .map((tag) => tag.trim())
    .filter(Boolean)
  if (words.length > 0) {
    fields.tags = [...new Set(words)]
    sources.tags = tags[0]!.leaf.path
  }
  if (custom.length > 0) fields.custom_fields = customFields(custom, sources)
  return { fields, sources, ...extra }
}

/** Several values of one name are a list. */
function customFields(custom: Match[], sources: Record<string, string>): Record<string, unknown> {
  const values = new Map<string, Leaf['value'] | Leaf['value'][]>()
  for (const { field, leaf } of custom) {
    const name = field.slice('custom_fields.'.length)
    const before = values.get(name)
    const isItem = /\[\d+\]$/.test(leaf.path)
    values.set(
      name,
      before === undefined ? (isItem ? [leaf.value] : leaf.value) : [before, leaf.value].flat(),
    )
    sources[field] ??= leaf.path
  }
  return Object.fromEntries(values)
}

/** Text as the type of its field. The names of options are compared as names of fields are. */
function guessed(text: string, name: string, kind: TargetKind): unknown {
  const field = fieldOf(name, kind)
  if (field?.type === 'timezone') return zoneNamed(text)
  if (field?.type !== 'enum') return typed(text, field)
  return optionNamed(text, field.values!) ?? text
}

const pathsOf = (sender: Sender, request: SenderRequest, kind: TargetKind): KnownPaths => ({
  ...sender.fields?.[kind],
  ...(kind === 'contacts' ? sender.primaryPaths?.(request) : {}),
})
