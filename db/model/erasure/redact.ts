import { ERASED, type Finder } from './person.ts'

/** What became of a row. */
export interface Redacted {
  row: Record<string, unknown>
  /** Whether it has an address or a number of the person, or is a record of it; or only the name. */
  found: 'key' | 'name' | undefined
}

/**
 * Removes a person from the values of a row, which are JSON: a record of the contact keeps only its id; an object that
 * has an address or a number as one of its values loses all of them, because the others are of the same person; in other
 * texts only the name, addresses and numbers are removed. A row that has only the name stays as it is unless `byName`,
 * because another person may have the same name.
 */
export function redactRow(row: Record<string, unknown>, person: Finder, byName: boolean): Redacted {
  const found = { key: false, name: false }
  // The first pass decides whether the row is about the person: then the name goes with the addresses.
  const first = redactMembers(row, person, false, found)
  if (!found.key && !(found.name && byName)) return { row, found: found.name ? 'name' : undefined }
  return { row: redactMembers(first, person, true, found), found: 'key' }
}

type Found = Record<'key' | 'name', boolean>

function walk(value: unknown, person: Finder, withNames: boolean, found: Found): unknown {
  if (typeof value === 'string') return redactText(value, person, withNames, found)
  if (typeof value === 'number' && Math.abs(value) >= 1e6) {
    const isNumber = person.isKey(String(value))
    found.key ||= isNumber
    return isNumber ? ERASED : value
  }
  if (Array.isArray(value)) return value.map((item) => walk(item, person, withNames, found))
  if (value === null || typeof value !== 'object') return value
  return redactObject(value as Record<string, unknown>, person, withNames, found)
}

function redactObject(
  value: Record<string, unknown>,
  person: Finder,
  withNames: boolean,
  found: Found,
): Record<string, unknown> {
  const { object, id } = value
  if (object === 'contact' && person.isId(id)) {
    const isWhole = Object.keys(value).length > 2
    found.key ||= isWhole
    return isWhole ? { object, id } : value
  }
  const members = Object.values(value)
  const isPersons =
    (object === undefined || object === 'contact') && members.some((one) => isKey(one, person))
  if (isPersons) {
    found.key = true
    return emptied(value) as Record<string, unknown>
  }
  return redactMembers(value, person, withNames, found)
}

function redactMembers(
  value: Record<string, unknown>,
  person: Finder,
  withNames: boolean,
  found: Found,
): Record<string, unknown> {
  const isPart = (member: unknown) => typeof member === 'string' && person.isPartOfName(member)
  if (Object.values(value).filter(isPart).length > 1) found.name = true
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      redactText(name, person, withNames, found),
      withNames && isPart(member) ? ERASED : walk(member, person, withNames, found),
    ]),
  )
}

const isKey = (value: unknown, person: Finder): boolean =>
  (typeof value === 'string' || typeof value === 'number') && person.isKey(String(value))

/** Values without their content; the names of members stay. */
function emptied(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(emptied)
  if (value === null || typeof value === 'boolean') return value
  if (typeof value !== 'object') return ERASED
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, emptied(member)]))
}

/** Text, which may be JSON itself, as stored answers and bodies are. */
function redactText(text: string, person: Finder, withNames: boolean, found: Found): string {
  if (/^\s*[[{]/.test(text)) {
    const parsed = parse(text)
    if (parsed !== undefined) {
      const walked = walk(parsed, person, withNames, found)
      const written = JSON.stringify(walked)
      return written === JSON.stringify(parsed) ? text : written
    }
  }
  const rest = person.redact(text, false)
  if (rest !== text) found.key = true
  if (person.hasName(text)) found.name = true
  return withNames ? person.redact(rest, true) : rest
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
