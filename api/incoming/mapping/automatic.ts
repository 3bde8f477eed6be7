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
 * Maps values by synonyms of their names, at any depth. If several values match a field, the better name wins, then the
 * value within the target (the person of a contact), then the shallower value, then the first. From a list of records
 * it uses the first, with a warning. Pure and deterministic.
 */
export function mapAutomatically(payload: unknown, target: TargetEntity): Mapped {
  const found = matchesIn(payload, target)
  const firstIndexes = firstRecords(found)
  const best = new Map<string, Match>()
  const tags: Leaf[] = []
  for (const match of found) {
    const { entry } = match.leaf
    if (entry && (firstIndexes.get(entry.list) ?? entry.index) !== entry.index) continue
    if (match.field === 'tags') tags.push(match.leaf)
    else if (match.score > (best.get(match.field)?.score ?? 0)) best.set(match.field, match)
  }
  const lists = new Set([...best.values()].map(({ leaf }) => leaf.entry?.list))
  const warnings = [...firstIndexes]
    .filter(([list]) => lists.has(list))
    .map(([list, index]) => `${list} has several records: only ${list}[${index}] was used`)
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

function fieldFor(leaf: Leaf, target: TargetEntity): { field: string; score: number } | undefined {
  if (leaf.context.some((word) => UNRELATED_WORDS.has(word))) return undefined
  const ofCompany = leaf.context.some((word) => COMPANY_WORDS.has(word))
  const ofPerson = leaf.context.some((word) => PERSON_WORDS.has(word))
  const entity = ENTITY_OF[target]
  const synonyms = SYNONYMS[entity]
  const outer = leaf.context.at(-1) ?? ''
  const name = baseName(leaf.name)

  if (belongsToCompany(target) && ofCompany) {
    // Only the name of the company is mapped; its email and phone are not the contact's.
    return ['name', 'companyname', 'title'].includes(name) ? { field: 'company_name', score: 60 } : undefined
  }
  const ofTarget = leaf.context.some((word) => SUBJECT_WORDS[entity].has(word))
  if ((ofPerson || ofCompany) && !ofTarget) return undefined
  // `name: {first, last}` is matched with the name of its parent.
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
      (isPlausible(found.field, leaf.value) ? 100 : 0) +
      (ofTarget ? 20 : 0) -
      leaf.context.length,
  }
}

/** `your-email`, `contact_email` and `q4_email` mean `email`. */
function baseName(name: string): string {
  return name.replace(
    /^(q\d+|\d+)?(your|my|the|contact|customer|lead|client|person|user|subscriber|attendee|buyer|guest|applicant|billing|form|field|input)?/,
    '',
  )
}

/** An implausible value is used only if there is no better one; validation then reports it. */
function isPlausible(field: string, value: Leaf['value']): boolean {
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

/** Text that is not a number is left out, so that it does not refuse the payload. */
const asInteger = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined)
