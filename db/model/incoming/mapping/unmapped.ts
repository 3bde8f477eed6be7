import { stepsOf } from '../../../../workflows/shared/paths.ts'
import { firstCharacters } from '../../records/values.ts'
import type { FieldMapping } from '../types.ts'
import type { Leaf } from './leaves.ts'
import type { Mapped } from './types.ts'

/** Listed paths, and the characters of each. */
const MAX_LISTED = 50
const MAX_PATH = 200

/** The paths of the payload's values that were not taken. */
export function unmappedOf(
  all: Leaf[],
  mapping: FieldMapping,
  { sources }: Mapped,
): Pick<Mapped, 'unmapped' | 'unmapped_more'> {
  const taken = new Set([...Object.entries(sources).map(takenPath), ...combinedPaths(mapping)].map(dotted))
  const missed = [...new Set(all.map(({ path }) => path))].filter((path) => !isWithin(dotted(path), taken))
  if (missed.length === 0) return {}
  const more = missed.length - MAX_LISTED
  return {
    unmapped: missed.slice(0, MAX_LISTED).map((path) => firstCharacters(path, MAX_PATH)),
    ...(more > 0 ? { unmapped_more: more } : {}),
  }
}

/** A field that takes a list names its first item. */
export const takenPath = ([to, path]: [string, string]) =>
  to === 'tags' || to.startsWith('custom_fields.') ? path.replace(/\[\d+\](\.\w+)?$/, '') : path

/** The paths of the values that rules append to others. */
export const combinedPaths = (mapping: FieldMapping): string[] =>
  mapping.mode === 'automatic'
    ? []
    : mapping.rules.flatMap(({ transforms }) =>
        transforms.flatMap((transform) => (transform.type === 'combine' ? transform.with : [])),
      )

const dotted = (path: string) => stepsOf(path).join('.')

function isWithin(path: string, taken: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1))
    if (taken.has(path.slice(0, end))) return true
  return false
}
