import { AppError, conflict } from '../model/errors.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord, RecordInput } from '../model/records/schemas.ts'
import { upsertKey } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { createMany, createRecord } from './create.ts'
import { type Finder, finderBy } from './find-by-key.ts'
import { type Failed, inWaves, type Outcome } from './sets.ts'
import { type Update, updateMany, updateSet } from './update.ts'

/** The patch of an existing record, and the input to create one. Only the one that applies can fail the upsert. */
export interface Upsert {
  /** Parsed by `updateSchema` or `upsertSchema`. */
  patch: RecordInput | AppError
  /** Parsed by `createSchema`. */
  input: RecordInput | AppError
}

export interface KeyedUpsert extends Upsert {
  /** The lookup key, from `Finder.keyOf`; undefined creates a record. */
  key: string | undefined
}

export interface UpsertOptions extends Pick<Update, 'adding'> {
  /** If several records have the key, the oldest is updated. By default this is a conflict. */
  takesOldest?: boolean
}

/**
 * Updates the record with the input's value of the field `by`, or creates one. Throws `conflict` with the candidates if
 * several records have this value; `validation_error` if `by` is not unique; the errors of create and update.
 */
export async function upsertRecord(
  tx: Tenant,
  kind: KindName,
  by: string,
  input: RecordInput,
  patch: RecordInput = input,
  options: UpsertOptions = {},
): Promise<{ record: AgxRecord; created: boolean }> {
  if (upsertKey(by, input) === undefined)
    return { record: await createRecord(tx, kind, input), created: true }
  const finder = await finderBy(tx, kind, by)
  const item = { input, patch, key: finder.keyOf(input) }
  const [outcome] = await upsertSet(tx, finder, [item], options, updateSet)
  if ('error' in outcome!) throw outcome.error
  const { record, created } = outcome!
  return { record, created }
}

/**
 * Updates or creates many records, found by their values of `by`; an item without a value is created. Items with the
 * same value apply in order. Errors as of `upsertRecord`.
 */
export async function upsertMany(
  tx: Tenant,
  kind: KindName,
  by: string,
  upserts: (Upsert & { patch: RecordInput })[],
): Promise<Outcome[]> {
  const finder = await finderBy(tx, kind, by)
  return upsertKeyed(
    tx,
    finder,
    upserts.map((upsert) => ({ ...upsert, key: finder.keyOf(upsert.patch) })),
  )
}

/** `upsertMany` with the lookup keys already computed. */
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

/** Attempts of an upsert, which retries after a concurrent write of its record. */
const MAX_ATTEMPTS = 3

/** `items`: without duplicate keys. `update`: `updateMany`, or `updateSet` if a conflict may fail the transaction. */
async function upsertSet(
  tx: Tenant,
  finder: Finder,
  items: KeyedUpsert[],
  options: UpsertOptions,
  update: typeof updateMany,
  attempts = MAX_ATTEMPTS,
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
    (place) =>
      attempts > 1 && items[place]!.key !== undefined && isOvertaken(steps[place]!, outcomes[place]!),
  )
  if (overtaken.length === 0) return outcomes
  const rest = overtaken.map((place) => items[place]!)
  const again = await upsertSet(tx, finder, rest, options, update, attempts - 1)
  for (const [i, outcome] of again.entries()) outcomes[overtaken[i]!] = outcome
  return outcomes
}

type Step = Failed | { input: RecordInput } | Update

function stepOf(finder: Finder, { patch, input }: Upsert, ids: string[], options: UpsertOptions): Step {
  if (ids.length > 1 && !options.takesOldest) return { error: severalMatch(finder, ids) }
  const fields = ids[0] ? patch : input
  if (fields instanceof AppError) return { error: fields }
  return ids[0] ? { id: ids[0], patch: fields, adding: options.adding, keepsKeys: true } : { input: fields }
}

/**
 * Whether the look-up is outdated. A create fails with `conflict` if a concurrent request took a unique value, found by
 * another field or without a look-up: the record may exist now. The record of an update may be deleted now.
 */
const isOvertaken = (step: Step, outcome: Outcome): boolean =>
  'error' in outcome &&
  (('input' in step && outcome.error.type === 'conflict') ||
    ('patch' in step && outcome.error.type === 'not_found'))

const severalMatch = ({ entity, by }: Finder, ids: string[]) =>
  conflict(`${ids.length} ${entity} have this ${by}`, {
    param: by,
    candidates: ids.map((id) => ({ object: kinds[entity].object, id })),
  })
