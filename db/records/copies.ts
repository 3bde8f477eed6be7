import { invalid } from '../model/errors.ts'
import { type Kind, type KindName, referencesOf } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord, RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { readRecords } from './read.ts'

/** Whether new records of a kind take values over from the records that they refer to. */
export const hasCopies = (kind: Kind): boolean => referencesOf(kind).some(([, { copies }]) => copies)

/**
 * Adds to the values of a new record what it copies from the records that it refers to (`Field.copies`). Throws
 * `validation_error` for a reference to a record that does not exist.
 */
export async function withCopies(tx: Tenant, kind: Kind, values: RecordInput): Promise<RecordInput> {
  const copied: RecordInput = { ...values }
  for (const [name, { to, copies }] of referencesOf(kind)) {
    const id = values[name]
    if (!copies || typeof id !== 'string') continue
    const target = (await readRecords(tx, to, [id])).get(id)
    if (!target) throw missing(name, to)
    Object.assign(copied, copiesOf(kind, copies, target, copied))
  }
  return copied
}

function copiesOf(kind: Kind, names: readonly string[], target: AgxRecord, values: RecordInput): RecordInput {
  const isOtherMoney = values.currency != null && values.currency !== target.currency
  const copied: RecordInput = {}
  for (const name of names) {
    const { type, filled } = kind.fields[name]!
    const isGiven = filled ? values[name] != null : values[name] !== undefined
    if (isGiven || target[name] == null || (type === 'money' && isOtherMoney)) continue
    copied[name] = target[name]
    if (type === 'money') copied.currency = target.currency
  }
  return copied
}

const missing = (name: string, to: KindName) =>
  invalid([{ loc: ['body', name], msg: `there is no ${kinds[to].object} with this id`, type: 'not_found' }])
