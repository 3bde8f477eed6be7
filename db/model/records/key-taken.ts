import { type AppError, conflict } from '../errors.ts'
import type { Kind } from './kind.ts'
import type { AgxRecord } from './schemas.ts'

/** The conflict of a record whose external_id another one has. */
export const externalIdTaken = (kind: Kind, record: AgxRecord): AppError =>
  conflict(`another ${kind.object} has the external_id ${record.external_id}`, { param: 'external_id' })

/**
 * The conflict of records that violate a unique index. `error`: that of the driver, which names the index, not the record:
 * the values are told of a record that is alone.
 */
export function keyTaken(kind: Kind, records: readonly AgxRecord[], error: unknown): AppError {
  const [record, ...more] = records
  const isAlone = record !== undefined && more.length === 0
  const [first, ...others] = kind.identity ?? []
  const { constraint } = error as { constraint?: unknown }
  if (first === undefined || constraint !== `${kind.entity}_identity`)
    return isAlone
      ? externalIdTaken(kind, record)
      : conflict(`another ${kind.object} has one of the external_ids`, { param: 'external_id' })
  const values = others.map((name) => (isAlone ? `${name} ${record[name]}` : name)).join(', ')
  return conflict(
    `the ${first.replace(/_id$/, '')} has another ${kind.object} with ${isAlone ? values : `the same ${values}`}`,
    { param: first, hint: `update that one, or upsert by ${first}` },
  )
}
