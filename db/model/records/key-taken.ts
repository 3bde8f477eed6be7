import { type AppError, conflict } from '../errors.ts'
import type { Kind } from './kind.ts'
import type { AgxRecord } from './schemas.ts'

/** The conflict of a record whose external_id another one has. */
export const externalIdTaken = (kind: Kind, record: AgxRecord): AppError =>
  conflict(`another ${kind.object} has the external_id ${record.external_id}`, { param: 'external_id' })

/** The conflict of a record that violates a unique index. `error`: that of the driver, which names the index. */
export function keyTaken(kind: Kind, record: AgxRecord, error: unknown): AppError {
  const [first, ...others] = kind.identity ?? []
  const { constraint } = error as { constraint?: unknown }
  if (first === undefined || constraint !== `${kind.entity}_identity`) return externalIdTaken(kind, record)
  const values = others.map((name) => `${name} ${record[name]}`).join(', ')
  return conflict(`the ${first.replace(/_id$/, '')} has another ${kind.object} with ${values}`, {
    param: first,
    hint: `update that one, or upsert by ${first}`,
  })
}
