import { AppError, conflict } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { createMany, createRecord } from './create.ts'
import { type Finder, finderBy } from './find-by-key.ts'
import type { EntityName } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { upsertKey } from './model/upsert-keys.ts'
import { type Failed, inWaves, type Outcome } from './sets.ts'
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
  const item = { input, patch, key: finder.keyOf(input) }
  const [outcome] = await upsertSet(tx, finder, [item], options, updateSet)
  if ('error' in outcome!) throw outcome.error
  const { record, created } = outcome!
  return { record, created }
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
    upserts.map((upsert) => ({ ...upsert, key: finder.keyOf(upsert.patch) })),
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
  const { entity } = finder
  const found = await finder.find(items.flatMap(({ key }) => key ?? []))
  const idsOf = ({ key }: KeyedUpsert) => (key === undefined ? [] : (found.get(key) ?? []))
  const steps = items.map((item) => stepOf(finder, item, idsOf(item), options))
  const creates = steps.flatMap((step) => ('input' in step ? [step.input] : []))
  const updates = steps.flatMap((step) => ('patch' in step ? [step] : []))
  const created = await createMany(tx, entity, creates)
  const updated = await update(tx, entity, updates)
  const outcomes = steps.map((step): Outcome => {
    if ('error' in step) return step
    return ('input' in step ? created : updated).shift()!
  })
  const overtaken = [...items.keys()].filter(
    (place) => looks > 1 && items[place]!.key !== undefined && isOvertaken(steps[place]!, outcomes[place]!),
  )
  if (overtaken.length === 0) return outcomes
  const rest = overtaken.map((place) => items[place]!)
  const again = await upsertSet(tx, finder, rest, options, update, looks - 1)
  for (const [i, outcome] of again.entries()) outcomes[overtaken[i]!] = outcome
  return outcomes
}

type Step = Failed | { input: RecordInput } | Update

function stepOf(finder: Finder, { patch, input }: Upsert, ids: string[], options: UpsertOptions): Step {
  if (ids.length > 1 && !options.takesOldest) return { error: severalMatch(finder, ids) }
  const given = ids[0] ? patch : input
  if (given instanceof AppError) return { error: given }
  return ids[0] ? { id: ids[0], patch: given, adding: options.adding } : { input: given }
}

/**
 * Whether a look found what does not hold any more. A create fails with `conflict` where another client, who looked by
 * another field or not at all, took a unique value: the record may exist now. The record of an update may be deleted.
 */
const isOvertaken = (step: Step, outcome: Outcome): boolean =>
  'error' in outcome &&
  (('input' in step && outcome.error.type === 'conflict') ||
    ('patch' in step && outcome.error.type === 'not_found'))

const severalMatch = ({ entity, by }: Finder, ids: string[]) =>
  conflict(`${ids.length} ${entity} have this ${by}`, {
    param: by,
    candidates: ids.map((id) => ({ object: entities[entity].object, id })),
  })
