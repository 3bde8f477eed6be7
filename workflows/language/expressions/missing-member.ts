import { meantBy } from '../problems.ts'

/** Members among which the one that was meant is looked for. */
const MOST_MEMBERS = 1_000
/** Members that are listed, and the characters of each. */
const LISTED = 12
const MOST_LISTED = 40

/**
 * At run time, for a path whose member does not exist: the one that was meant, or those that there are. Undefined if the
 * path is computed, so that its keys are not known here.
 */
export function hintAt(
  path: readonly (string | number)[],
  scope: Record<string, unknown>,
): string | undefined {
  let at: unknown = scope
  for (const [index, key] of path.entries()) {
    const before = path.slice(0, index).join('.')
    if (at === null) return `${before} is null`
    if (typeof at !== 'object') return `${before} is a ${typeof at}`
    if (!Object.hasOwn(at, key))
      return Array.isArray(at) ? inList(before, key, at) : inMapping(before, key, at)
    at = (at as Record<string, unknown>)[key]
  }
  return undefined
}

/** Values that others give, which need not have every member each time. */
const GIVEN = /^(nodes|trigger|inputs|item|event|page|previous)\./

const inList = (before: string, key: string | number, { length }: readonly unknown[]) =>
  `${before} is a list of ${length}${/^\d+$/.test(String(key)) ? '' : ': read one of its items, or all with a loop'}`

function inMapping(before: string, key: string | number, at: object): string {
  const names = Object.keys(at).slice(0, MOST_MEMBERS)
  const meant = meantBy(String(key), names)
  if (meant !== undefined) return `did you mean ${meant}?`
  if (names.length === 0) return `${before} is empty`
  const shown = names.slice(0, LISTED).map((name) => name.slice(0, MOST_LISTED))
  const rest = names.length > LISTED ? ', …' : ''
  const listed = `${before === '' ? 'the roots are' : `${before} has`} ${shown.join(', ')}${rest}`
  return GIVEN.test(before)
    ? `${listed}; if it may be missing, write \`| default: …\` directly after it`
    : listed
}
