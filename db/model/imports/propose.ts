import { READ_ONLY } from '../records/common-fields.ts'
import type { Field, KindName } from '../records/kind.ts'
import { kinds } from '../records/kinds/index.ts'
import { consentColumn } from '../records/opt-out.ts'
import { normalise, SYNONYMS } from '../records/synonyms.ts'
import { presetMeaning, type Source, sourceOf } from './presets.ts'
import { type Mapping, type Target, type Targets, targetOf } from './targets.ts'

/** The proposal for a file. */
export interface Proposal {
  mapping: Mapping
  /** Why columns have no target. */
  dropped: Record<string, string>
  /** The system that exported the file, by its header. */
  source: Source | undefined
}

/**
 * Proposes a target for each column of a header: what the export of a known system means by it, a field with that name
 * or synonym; none for read-only fields; else a custom field. If two columns match one field, the better match gets it.
 */
export function proposeMapping(kind: KindName, header: string[], targets: Targets): Proposal {
  const named = targetsByName(targets)
  const source = sourceOf(header)
  const guesses = header.map((column) => ({ column, ...guess(kind, column, targets, named, source) }))
  const best = new Map<string, string>()
  for (const { column, target } of [...guesses].sort((one, other) => one.rank - other.rank))
    if (target && !best.has(target) && !targets.byName.get(target)?.isShared) best.set(target, column)
  const mapping: Mapping = {}
  const dropped: Record<string, string> = {}
  for (const { column, target, reason } of guesses) {
    const taken = target !== null && best.has(target) && best.get(target) !== column
    // The name beside the id of a user is no field of its own.
    const isUser = taken && targets.byName.get(target)?.type === 'user'
    const own = isUser ? null : taken ? asCustomField(column, targets) : target
    const free = own !== null && (!taken || !best.has(own))
    if (taken && free) best.set(own, column)
    mapping[column] = free ? own : null
    if (!free)
      dropped[column] = taken
        ? `${best.get(target!)} is the ${target}`
        : (reason ?? 'no field can be named after it')
  }
  for (const what of ['company', 'contact', 'parent_company']) {
    // The record of a key is certain, that of a name is not. But a name creates its company, and a domain does not.
    const columnOf = (key: string) => header.find((column) => mapping[column] === `${what}_${key}`)
    const [best, ...others] = ['id', 'external_id', 'email', 'name', 'domain'].flatMap(
      (key) => columnOf(key) ?? [],
    )
    for (const column of others) {
      mapping[column] = null
      dropped[column] = `${best} links the ${what}`
    }
  }
  return { mapping, dropped, source }
}

interface Guess {
  target: string | null
  rank: number
  /** Why there is none. */
  reason?: string
}

function guess(
  kind: KindName,
  column: string,
  targets: Targets,
  named: ReadonlyMap<string, string>,
  source: Source | undefined,
): Guess {
  if (targetOf(targets, column)) return { target: column, rank: 0 }
  const meant = source && presetMeaning(source, kind, column)
  if (meant && 'dropped' in meant) return { target: null, rank: 0, reason: meant.dropped }
  if (meant && targets.byName.has(meant.to)) return { target: meant.to, rank: 1 }
  const whole = normalise(column)
  const { object } = kinds[kind]
  const fields: Record<string, Field> = kinds[kind].fields
  const bare = whole.startsWith(object) ? whole.slice(object.length) : whole
  if (IDS.has(bare) && column !== 'id') return { target: 'external_id', rank: 3 }
  if (SERVICE.has(bare) || ADDED.test(bare) || fields[column]?.readOnly)
    return { target: null, rank: 0, reason: 'only the service writes it' }
  // Pipedrive: `Deal - Deal created`.
  const time = TIMES.get(bare.startsWith(object) ? bare.slice(object.length) : bare)
  if (time && targets.byName.has(time)) return { target: time, rank: 4 }
  for (const name of [whole, bare]) {
    const own = named.get(name)
    if (own) return { target: own, rank: name === whole ? 1 : 2 }
  }
  for (const name of [whole, bare]) {
    const synonym = SYNONYMS[kind][name]
    if (synonym && targets.byName.has(synonym.field)) return { target: synonym.field, rank: 4 + synonym.rank }
    const consent = targets.byName.get(`opted_${consentColumn(name)}`)
    if (consent) return { target: consent.name, rank: 4 }
  }
  const user = USERS.get(bare)
  if (user && targets.byName.has(user)) return { target: user, rank: 4 }
  return { target: asCustomField(column, targets), rank: 10, reason: UNDEFINED }
}

const UNDEFINED = 'the organization has no custom field of this name, and allows only defined ones'

/** Names of users; a webhook cannot know the users of the organization. */
const USERS = new Map(
  Object.entries({
    owner_id:
      'owner recordowner accountowner opportunityowner leadowner contactowner companyowner dealowner ownername owneremail accountmanager besitzer inhaber',
    author_id: 'author authorname',
    assignee_id: 'assigneename assignedto assignee assignedtouser zugewiesenan',
  }).flatMap(([target, names]) => names.split(' ').map((name): [string, string] => [name, target])),
)

/** Every target by its own name; the first of two targets with the same name. */
function targetsByName({ byName }: Targets): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const target of byName.values())
    for (const name of namesOf(target)) if (!found.has(name)) found.set(name, target.name)
  return found
}

/** The names of a target. A part of an address is also found without `address`, a time also without `at`. */
const namesOf = ({ name, label = name }: Target) =>
  name.startsWith('custom_fields.')
    ? [normalise(name.slice('custom_fields.'.length)), normalise(label)]
    : [name, name.split('.').at(-1)!, name.replace(/_at$/, '')].map(normalise)

/** Names of record ids in other systems. */
const IDS = new Set(['recordid', 'id', 'externalid', 'hsobjectid'])

/** Fields that only the service or another system writes. */
const SERVICE = new Set(
  [
    ...READ_ONLY.filter((name) => name !== 'created_at'),
    'last modified date',
    'last modified',
    'updated',
  ].map(normalise),
)

/** Names of times that only an import sets: a webhook receives what happens now. */
const TIMES = new Map(
  Object.entries({
    created_at:
      'createdat created createdate createddate createdon createdtime createtime creationdate datecreated addtime dateadded erstelltam erstellt erstelldatum angelegtam',
    close_date: 'closedate abschlussdatum',
    closed_at: 'closedat closedon closeddate dateclosed closedtime geschlossenam',
    won_at: 'wontime wonat wondate datewon gewonnenam',
    lost_at: 'losttime lostat lostdate datelost verlorenam',
  }).flatMap(([target, names]) => names.split(' ').map((name): [string, string] => [name, target])),
)

/** Columns that `GET …/errors` adds to a file. */
const ADDED = /^(error|importerror\d*)$/

/** A custom field named after a column; null if no valid name remains, or if custom fields need a definition. */
function asCustomField(column: string, { open }: Targets): string | null {
  const name = column
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{Mark}/gu, '')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[_0-9]+|_+$/g, '')
    .slice(0, 63)
  return name && open ? `custom_fields.${name}` : null
}
