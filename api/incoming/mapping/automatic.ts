import { ENTITY_OF, type TargetEntity } from '../../../db/incoming/types.ts'
import { splitName } from '../../../db/records/model/split-name.ts'
import {
  COMPANY_WORDS,
  PERSON_WORDS,
  SUBJECT_WORDS,
  SYNONYMS,
  UNRELATED_WORDS,
} from '../../../db/records/model/synonyms.ts'
import { looksLikeEmail } from '../../../db/records/model/values.ts'
import { type Leaf, leaves } from './leaves.ts'
import { belongsToCompany, fieldOf } from './targets.ts'
import type { Mapped } from './types.ts'

/**
 * Understands a payload by the names of its values: synonyms, wherever they are nested. Of several values for one field
 * the one with the better name wins, then the one that lies with the person, then the shallower, then the first.
 * Of a list of several records it takes the first, with a warning. Pure; the same payload always gives the same.
 */
export function mapAutomatically(payload: unknown, target: TargetEntity): Mapped {
  const found = matchesIn(payload, target)
  const taken = firstRecords(found)
  const best = new Map<string, Match>()
  const tags: Leaf[] = []
  for (const match of found) {
    const { entry } = match.leaf
    if (entry && (taken.get(entry.list) ?? entry.index) !== entry.index) continue
    if (match.field === 'tags') tags.push(match.leaf)
    else if (match.score > (best.get(match.field)?.score ?? 0)) best.set(match.field, match)
  }
  const lists = new Set([...best.values()].map(({ leaf }) => leaf.entry?.list))
  const warnings = [...taken]
    .filter(([list]) => lists.has(list))
    .map(([list, index]) => `${list} is a list of several records: only ${list}[${index}] was taken`)
  return { ...assemble(best, tags, target), ...(warnings.length > 0 ? { warnings } : {}) }
}

interface Match {
  leaf: Leaf
  field: string
  score: number
}

function matchesIn(payload: unknown, target: TargetEntity): Match[] {
  return leaves(payload).flatMap((leaf) => {
    const match = fieldFor(leaf, target)
    return match ? [{ leaf, ...match }] : []
  })
}

/** What tells records apart: a list where two entries have the same of these is a list of records. */
const IDENTITY = new Set(['email', 'full_name', 'first_name', 'last_name', 'name', 'title', 'external_id'])

/** Each list of records with the index of its first: what is made must not be a mixture of several. */
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

function fieldFor(leaf: Leaf, target: TargetEntity): { field: string; score: number } | undefined {
  if (leaf.context.some((word) => UNRELATED_WORDS.has(word))) return undefined
  const ofCompany = leaf.context.some((word) => COMPANY_WORDS.has(word))
  const ofPerson = leaf.context.some((word) => PERSON_WORDS.has(word))
  const entity = ENTITY_OF[target]
  const synonyms = SYNONYMS[entity]
  const outer = leaf.context.at(-1) ?? ''
  const name = withoutWrapping(leaf.name)

  if (belongsToCompany(target) && ofCompany) {
    // Of the company only its name is wanted; its email and phone are not the contact's.
    return ['name', 'companyname', 'title'].includes(name) ? { field: 'company_name', score: 60 } : undefined
  }
  const ofTarget = leaf.context.some((word) => SUBJECT_WORDS[entity].has(word))
  if ((ofPerson || ofCompany) && !ofTarget) return undefined
  // `name: {first, last}` is told by what it lies in.
  const joined = synonyms[outer + leaf.name]
  const exact = synonyms[leaf.name]
  const stripped = synonyms[name]
  const found = joined ?? exact ?? stripped
  if (!found) return undefined
  const rank = exact || joined ? 40 : 30
  return {
    field: found.field,
    score:
      rank -
      found.rank * 4 +
      (plausible(found.field, leaf.value) ? 100 : 0) +
      (ofTarget ? 20 : 0) -
      leaf.context.length,
  }
}

/** `your-email`, `contact_email` and `q4_email` mean `email`. */
function withoutWrapping(name: string): string {
  return name.replace(
    /^(q\d+|\d+)?(your|my|the|contact|customer|lead|client|person|user|subscriber|attendee|buyer|guest|applicant|billing|form|field|input)?/,
    '',
  )
}

/** A value that cannot be what its name says is taken only where nothing better is there; validation then says so. */
function plausible(field: string, value: Leaf['value']): boolean {
  if (field === 'email') return looksLikeEmail(String(value))
  if (field === 'phone' || field === 'mobile_phone') return (String(value).match(/\d/g)?.length ?? 0) >= 5
  return typeof value !== 'boolean'
}

function assemble(best: Map<string, Match>, tags: Leaf[], target: TargetEntity): Mapped {
  const fields: Record<string, unknown> = {}
  const sources: Record<string, string> = {}
  const address: Record<string, string> = {}
  const extra: Pick<Mapped, 'company_name' | 'note'> = {}
  let fullName: Leaf | undefined
  for (const [field, { leaf }] of best) {
    const text = String(leaf.value)
    if (field === 'full_name') {
      fullName = leaf
      continue
    }
    sources[field] = leaf.path
    if (field === 'company_name') extra.company_name = text
    else if (field === 'note_content') extra.note = text
    else if (field.startsWith('address.')) address[field.slice('address.'.length)] = text
    else fields[field] = isInteger(field, target) ? asInteger(text) : text
  }
  if (target === 'Contact' && fullName && !(fields.first_name && fields.last_name)) {
    for (const [field, part] of Object.entries(splitName(String(fullName.value))))
      if (fields[field] === undefined) {
        fields[field] = part
        sources[field] = fullName.path
      }
  }
  if (Object.keys(address).length > 0) fields.address = address
  const words = tags
    .flatMap((leaf) => String(leaf.value).split(','))
    .map((tag) => tag.trim())
    .filter(Boolean)
  if (words.length > 0) {
    fields.tags = [...new Set(words)]
    sources.tags = tags[0]!.path
  }
  return { fields, sources, ...extra }
}

const isInteger = (field: string, target: TargetEntity) => fieldOf(field, target)?.type === 'integer'

/** What is no number is no reason to refuse the rest. */
const asInteger = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined)
