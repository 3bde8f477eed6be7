import type { RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { createSet } from './create.ts'
import { finderBy } from './find-by-key.ts'
import type { Failed } from './sets.ts'

/**
 * Finds companies by name, ignoring case, and creates the missing ones. If several companies have the name, takes the
 * oldest. `inputs`: names, parsed by `createSchema`. @returns the id of each, or the error if a company cannot be
 * created from a name alone.
 */
export async function companiesNamed(
  tx: Tenant,
  inputs: RecordInput[],
): Promise<({ id: string } | Failed)[]> {
  const finder = await finderBy(tx, 'companies', 'name')
  const keyOf = (input: RecordInput) => finder.keyOf(input)!
  // The first input gives a new company its name.
  const byKey = new Map<string, RecordInput>()
  for (const input of inputs) byKey.set(keyOf(input), byKey.get(keyOf(input)) ?? input)
  const companies = new Map<string, { id: string } | Failed>()
  const missing = () => [...byKey.keys()].filter((key) => !companies.has(key))
  // First looks without a lock: a lock on the name would serialise all requests of one company, and only its creation
  // needs one.
  for (const look of [finder.peek, finder.find])
    for (const [key, ids] of await look(missing())) companies.set(key, { id: ids[0]! })
  const created = missing()
  // Without a savepoint: a name alone violates no unique constraint.
  const made = await createSet(
    tx,
    'companies',
    created.map((key) => byKey.get(key)!),
  )
  for (const [i, outcome] of made.entries())
    companies.set(created[i]!, 'error' in outcome ? outcome : { id: outcome.record.id })
  return inputs.map((input) => companies.get(keyOf(input))!)
}
