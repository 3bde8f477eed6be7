import { conflict } from '../model/errors.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { createSet } from './create.ts'
import { finderBy } from './find-by-key.ts'
import type { Failed } from './sets.ts'

/** A company by its name. */
export interface NamedCompany {
  id: string
  created: boolean
}

/**
 * Finds companies by name, ignoring case, and creates the missing ones. If several companies have the name, takes the
 * oldest, unless `refusesSeveral`. `inputs`: names, parsed by `createSchema`. @returns the company of each, or the error
 * if a company cannot be created from a name alone, or several have the name.
 */
export async function companiesNamed(
  tx: Tenant,
  inputs: RecordInput[],
  { refusesSeveral = false } = {},
): Promise<(NamedCompany | Failed)[]> {
  const finder = await finderBy(tx, 'companies', 'name')
  const keyOf = (input: RecordInput) => finder.keyOf(input)!
  // The first input gives a new company its name.
  const byKey = new Map<string, RecordInput>()
  for (const input of inputs) byKey.set(keyOf(input), byKey.get(keyOf(input)) ?? input)
  const companies = new Map<string, NamedCompany | Failed>()
  const missing = () => [...byKey.keys()].filter((key) => !companies.has(key))
  // First looks without a lock: a lock on the name would serialise all requests of one company, and only its creation
  // needs one.
  for (const look of [finder.peek, finder.find])
    for (const [key, ids] of await look(missing()))
      companies.set(
        key,
        refusesSeveral && ids.length > 1
          ? { error: severalNamed(byKey.get(key)!.name, ids) }
          : { id: ids[0]!, created: false },
      )
  const created = missing()
  // Without a savepoint: a name alone violates no unique constraint.
  const made = await createSet(
    tx,
    'companies',
    created.map((key) => byKey.get(key)!),
  )
  for (const [i, outcome] of made.entries())
    companies.set(created[i]!, 'error' in outcome ? outcome : { id: outcome.record.id, created: true })
  return inputs.map((input) => companies.get(keyOf(input))!)
}

/** Ids that the error of several companies names. */
const MAX_NAMED = 3

const severalNamed = (name: unknown, ids: string[]) =>
  conflict(
    `${ids.length} companies are called ${name} (${ids.slice(0, MAX_NAMED).join(', ')}${ids.length > MAX_NAMED ? ', …' : ''}): merge them, or give the id of one as company_id`,
    { candidates: ids.map((id) => ({ object: 'company', id })) },
  )
