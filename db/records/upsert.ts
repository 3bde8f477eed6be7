import { AppError, conflict } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { createMany, createRecord } from './create.ts'
import { type Finder, finderBy, keyIn } from './find-by-key.ts'
import type { EntityName } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { upsertKey } from './model/upsert-keys.ts'
import { inWaves, type Outcome } from './sets.ts'
import { type Update, updateMany, updateSet } from './update.ts'

/** The change of a record that exists, and the input to create it. An error matters only where it is needed. */
export interface Upsert {
  /** What `updateSchema` or `upsertSchema` parsed. */
  patch: RecordInput | AppError
  /** What `createSchema` parsed. */
  input: RecordInput | AppError
}

export interface KeyedUpsert extends Upsert {
  /** What `Finder.keyOf` made of the value to find the record by; undefined creates one. */
  key: string | undefined
}

export interface UpsertOptions extends Pick<Update, 'adding'> {
  /** Of several records with the key the oldest is updated. By default they are a conflict. */
  takesOldest?: boolean
}

/**
 * Updates the record whose `by` has the input's value, or creates it. Throws `conflict` with the candidates where
 * several records have it; `validation_error` for a `by` that is not unique; what create and update throw.
 */
export async function upsertRecord(
  tx: Tenant,
  entity: EntityName,
  by: string,
  input: RecordInput,
  patch: RecordInput = input,
  options: UpsertOptions = {},
): Promise<{ record: AgxRecord; created: boolean }> {
  if (upsertKey(by, input) === undefined)
    return { record: await createRecord(tx, entity, input), created: true }
  const finder = await finderBy(tx, entity, by)
  const item = { input, patch, key: keyIn(finder, input) }
  const [outcome] = await upsertSet(tx, finder, [item], options, updateSet)
  if ('error' in outcome!) throw outcome.error
  return outcome!
}

/**
 * Updates or creates many records, each found by its value of `by`; one without a value is created. Several with one
 * value take effect in order. Errors as of `upsertRecord`.
 */
export async function upsertMany(
  tx: Tenant,
  entity: EntityName,
  by: string,
  upserts: (Upsert & { patch: RecordInput })[],
): Promise<Outcome[]> {
  const finder = await finderBy(tx, entity, by)
  return upsertKeyed(
    tx,
    finder,
    upserts.map((upsert) => ({ ...upsert, key: keyIn(finder, upsert.patch) })),
  )
}

/** The same, with the keys already read. */
export const upsertKeyed = (
  tx: Tenant,
  finder: Finder,
  items: KeyedUpsert[],
  options: UpsertOptions = {},
): Promise<Outcome[]> =>
  inWaves(
    items,
    ({ key }) => (key === undefined ? [] : [key]),
    (wave) => upsertSet(tx, finder, wave, options, updateMany),
  )

/** So often an upsert looks for its record before it fails with what came in between. */
const LOOKS = 3

/** `items`: without duplicate keys. `update`: `updateMany`, or `updateSet` where a conflict may fail the transaction. */
async function upsertSet(
  tx: Tenant,
  finder: Finder,
  items: KeyedUpsert[],
  options: UpsertOptions,
  update: typeof updateMany,
  looks = LOOKS,
): Promise<Outcome[]> {
  const { entity, by } = finder
  const found = await finder.find(items.flatMap(({ key }) => key ?? []))
  const outcomes: Outcome[] = new Array(items.length)
  const creates: { place: number; input: RecordInput }[] = []
  const updates: ({ place: number } & Update)[] = []
  for (const [place, { key, patch, input }] of items.entries()) {
    const ids = (key !== undefined && found.get(key)) || []
    const given = ids[0] ? patch : input
    if (ids.length > 1 && !options.takesOldest) outcomes[place] = { error: severalMatch(entity, by, ids) }
    else if (given instanceof AppError) outcomes[place] = { error: given }
    else if (ids[0]) updates.push({ place, id: ids[0], patch: given, adding: options.adding })
    else creates.push({ place, input: given })
  }
  const overtaken: number[] = []
  const settle = (writes: { place: number }[], written: Outcome[], sign: AppError['type']) => {
    for (const [i, outcome] of written.entries()) {
      const { place } = writes[i]!
      outcomes[place] = outcome
      const mayRepeat = items[place]!.key !== undefined && looks > 1
      if (mayRepeat && 'error' in outcome && outcome.error.type === sign) overtaken.push(place)
    }
  }
  const inputs = creates.map(({ input }) => input)
  // Another client, who looked by another field or not at all, may have created the record: it took a unique value.
  settle(creates, await createMany(tx, entity, inputs), 'conflict')
  // The record may have been deleted.
  settle(updates, await update(tx, entity, updates), 'not_found')
  if (overtaken.length === 0) return outcomes
  const rest = overtaken.map((place) => items[place]!)
  const again = await upsertSet(tx, finder, rest, options, update, looks - 1)
  for (const [i, outcome] of again.entries()) outcomes[overtaken[i]!] = outcome
  return outcomes
}

const severalMatch = (entity: EntityName, by: string, ids: string[]) =>
  conflict(`${ids.length} ${entity} have this ${by}`, {
    param: by,
    candidates: ids.map((id) => ({ object: entities[entity].object, id })),
  })
