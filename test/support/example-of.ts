import { type KindName, referencesOf } from '../../db/model/records/kind.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import type { RecordInput } from '../../db/model/records/schemas.ts'

type Create = (kind: KindName, values: RecordInput) => Promise<{ id: string }>

/** The example of a kind, with new records for the references that it requires. */
export const exampleOf = async (kind: KindName, create: Create): Promise<RecordInput> => ({
  ...kinds[kind].example,
  ...(await ownersOf(kind, create)),
})

/** New records, which `create` makes, for the references that a kind requires: by field. */
export async function ownersOf(kind: KindName, create: Create): Promise<RecordInput> {
  const owners: RecordInput = {}
  for (const [name, { required, to }] of referencesOf(kinds[kind]))
    if (required) owners[name] = (await createExample(to, create)).id
  return owners
}

/** A record of the kind, made of its example. */
export const createExample = async (kind: KindName, create: Create): Promise<{ id: string }> =>
  create(kind, await exampleOf(kind, create))
