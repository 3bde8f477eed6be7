import { isDeepStrictEqual } from 'node:util'
import { conflict } from '../../model/errors.ts'
import { customTypes, type Definition, readValue } from '../../model/records/custom-fields/types.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kinds } from '../../model/records/kinds/index.ts'
import { uniqueKey } from '../../model/records/unique.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { updateMany } from '../update.ts'
import { freeField, takeValues } from './unique.ts'

/**
 * Converts the stored values of a custom field to a changed definition. If one of them is invalid, nothing changes. A
 * value that needs another form (the text "5" in a field that becomes a number) is rewritten by an update of its
 * record, with a version, a history entry and an event.
 */

/** Number of values read at a time, to bound the memory. */
const PAGE = 2_000
/** The maximum number of records rewritten by one request. */
const MAX_REWRITTEN = 10_000
const MAX_EXAMPLES = 3
/** Number of records rewritten by one statement. */
const AT_ONCE = 500

/** Throws `conflict` with examples if stored values do not match the definition, or are not unique. */
export async function fitValues(
  tx: Tenant,
  kind: KindName,
  name: string,
  before: Definition | undefined,
  after: Definition,
): Promise<void> {
  const sameReading =
    before !== undefined &&
    before.type === after.type &&
    (before.options ?? []).every((option) => after.options?.includes(option))
  const sameUnique = before !== undefined && before.unique === after.unique
  if (sameReading && (sameUnique || !after.unique)) {
    if (!after.unique && !sameUnique) await freeField(tx, kind, name)
    return
  }
  if (before?.unique) await freeField(tx, kind, name)
  const rewritten = await checkValues(tx, kind, name, before, after)
  await updateAll(tx, kind, name, rewritten)
}

/** Removes a field from every record that has it. Throws `conflict` if there are too many. */
export async function clearValues(tx: Tenant, kind: KindName, name: string): Promise<number> {
  const holders: [id: string, value: null][] = []
  for await (const page of valuesOf(tx, kind, name)) {
    for (const { id } of page) holders.push([id, null])
    if (holders.length > MAX_REWRITTEN) throw tooMany(kind)
  }
  await updateAll(tx, kind, name, holders)
  return holders.length
}

/** @returns the records whose value must be rewritten, with the new value. */
async function checkValues(
  tx: Tenant,
  kind: KindName,
  name: string,
  before: Definition | undefined,
  after: Definition,
): Promise<[id: string, value: unknown][]> {
  const rewritten: [string, unknown][] = []
  const examples: string[] = []
  let invalid = 0
  for await (const page of valuesOf(tx, kind, name)) {
    const valid: { id: string; value: unknown }[] = []
    for (const { id, value } of page) {
      const reading = readValue(after, value)
      if ('msg' in reading) {
        invalid++
        if (examples.length < MAX_EXAMPLES) examples.push(id)
        continue
      }
      valid.push({ id, value: reading.value })
      if (!isDeepStrictEqual(reading.value, value)) rewritten.push([id, reading.value])
    }
    if (after.unique && invalid === 0) await claimAll(tx, kind, name, valid)
    if (rewritten.length > MAX_REWRITTEN && invalid === 0) throw tooMany(kind)
  }
  if (invalid === 0) return rewritten
  const { object } = kinds[kind]
  throw conflict(
    `${invalid === 1 ? `1 ${object} holds` : `${invalid} ${kind} hold`} a value of ${name} that is not ${describe(after)}, for example ${examples[0]}`,
    {
      param: before && before.type === after.type ? 'options' : 'type',
      hint: 'change or clear these values first',
      candidates: examples.map((id) => ({ object, id })),
    },
  )
}

const describe = ({ type, options }: Definition) =>
  options ? `one of ${options.join(', ')}` : customTypes[type].expects

async function claimAll(
  tx: Tenant,
  kind: KindName,
  name: string,
  values: { id: string; value: unknown }[],
): Promise<void> {
  const { object } = kinds[kind]
  const duplicate = (value: unknown, ids: string[]) =>
    conflict(`several ${kind} have the same ${name}, for example ${String(value).slice(0, 100)}`, {
      param: 'unique',
      hint: 'merge them, or change their values first',
      candidates: ids.map((id) => ({ object, id })),
    })
  const byKey = new Map<string, { id: string; value: unknown }>()
  for (const one of values) {
    const key = uniqueKey(one.value)
    const other = byKey.get(key)
    if (other) throw duplicate(one.value, [other.id, one.id])
    byKey.set(key, one)
  }
  const wanted = [...byKey].map(([key, { id }]) => ({ name, key, record_id: id }))
  const held = new Set((await takeValues(tx, kind, wanted)).map((row) => row.key))
  const taken = wanted.find(({ key }) => !held.has(key))
  if (!taken) return
  const row = await tx
    .trx('custom_field_values')
    .where({ organization_id: tx.organizationId, entity: kind, name, value_key: taken.key })
    .first<{ record_id: string } | undefined>('record_id')
  throw duplicate(byKey.get(taken.key)!.value, [row?.record_id ?? [], taken.record_id].flat())
}

/** The values of all records that have the field, except deleted records: clients cannot correct them. */
async function* valuesOf(
  tx: Tenant,
  kind: KindName,
  name: string,
): AsyncGenerator<{ id: string; value: unknown }[]> {
  let after = '00000000-0000-0000-0000-000000000000'
  while (true) {
    const { rows } = await tx.trx.raw<{ rows: { id: string; value: unknown }[] }>(
      `select id, custom_fields -> ? as value from ${kind}
       where organization_id = ? and id > ? and deleted_at is null and jsonb_exists(custom_fields, ?)
       order by id limit ?`,
      [name, tx.organizationId, after, name, PAGE],
    )
    if (rows.length > 0) yield rows
    if (rows.length < PAGE) return
    after = rows.at(-1)!.id
  }
}

async function updateAll(
  tx: Tenant,
  kind: KindName,
  name: string,
  values: [id: string, value: unknown][],
): Promise<void> {
  for (let i = 0; i < values.length; i += AT_ONCE) {
    const updates = values
      .slice(i, i + AT_ONCE)
      .map(([id, value]) => ({ id, patch: { custom_fields: { [name]: value } } }))
    for (const outcome of await updateMany(tx, kind, updates)) if ('error' in outcome) throw outcome.error
  }
}

const tooMany = (kind: KindName) =>
  conflict(`more than ${MAX_REWRITTEN} ${kind} would have to be rewritten`, {
    hint: 'clear or change the values in batches first',
  })
