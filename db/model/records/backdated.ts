import type { Issue } from '../errors.ts'
import type { Draft, Kind } from './kind.ts'

/**
 * Times that the service sets, and that a create, an upsert or an import can set instead, so that records of another
 * system keep their past. They are never in the future.
 */

/** The end of the descriptions of these fields. */
export const MAY_BE_GIVEN = 'Imports, and creates and upserts with `records:backdate`, may set it.'

/** The names of these fields. */
export const backdatedFields = (kind: Kind): string[] => [
  ...Object.keys(kind.fields).filter((name) => kind.fields[name]!.backdated),
  'created_at',
]

export const LATE = 'must not be in the future'

/** Both times are in the form of records, which sorts as text. */
export const isLate = (time: unknown, now = new Date().toISOString()): boolean =>
  typeof time === 'string' && time > now

/** The issues of the given times, and those of the kind. */
export function draftIssues(kind: Kind, draft: Omit<Draft, 'actor'>): Issue[] {
  const { given, now } = draft
  const late = backdatedFields(kind).filter((name) => isLate(given[name], now))
  return [
    ...late.map((name) => ({
      loc: ['body', name],
      msg: LATE,
      type: 'invalid_value',
      input: given[name],
    })),
    ...(kind.check?.(draft) ?? []),
  ]
}
