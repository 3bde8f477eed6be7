import { AppError, conflict, invalid } from '../errors.ts'
import { requireVersion } from '../lists/version.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lacksCurrency, organizationCurrency } from './currency.ts'
import { holdRules } from './custom-fields/rules.ts'
import { claimUnique, uniqueTaken } from './custom-fields/unique.ts'
import { updateAndLink } from './given-links.ts'
import { linkPrimaries } from './links.ts'
import { recordNotFound } from './merged.ts'
import type { Rules } from './model/custom-fields/types.ts'
import { type EntityName, type Kind, referencesOf } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import { change, creation, patched, type Write } from './model/prepare.ts'
import type { RecordInput } from './model/schemas.ts'
import { upsertKey } from './model/upsert-keys.ts'
import { referenceIssues } from './references.ts'
import { attempt, inSets, inWaves, type Outcome, pick } from './sets.ts'
import { createRecord } from './store.ts'
import { externalIdTaken, isUniqueViolation, lockRecords, type UpdateOptions } from './update.ts'
import { type Finder, finderBy, isOvertaken, LOOKS, severalMatch } from './upsert.ts'
import { writeRecords } from './write.ts'

/**
 * Many records of one kind in a few statements, however many they are: what they refer to is checked in sets, and
 * records, histories and events are written by one statement. What is wrong with one of them does not keep the others
 * from being written. Where the statement fails, for instance since another client took an external_id meanwhile,
 * they are written one by one.
 */

export type { Outcome }

/** `inputs`: what `createSchema` parsed. Errors are those of `createRecord`. */
export async function createMany(tx: Tenant, entity: EntityName, inputs: RecordInput[]): Promise<Outcome[]> {
  const one = async (tx: Tenant, input: RecordInput) => ({
    record: await createRecord(tx, entity, input),
    created: true,
  })
  const alone = (input: RecordInput) => input.associations != null
  return inSets(tx, inputs, alone, (tx, set) => createSet(tx, entities[entity], set), one)
}

export interface Update extends Pick<UpdateOptions, 'ifVersion'> {
  id: string
  /** What `updateSchema` or `upsertSchema` parsed. */
  patch: RecordInput
}

/** Several updates of one record take effect in order. Errors are those of `updateRecord`. */
export async function updateMany(tx: Tenant, entity: EntityName, updates: Update[]): Promise<Outcome[]> {
  const kind = entities[entity]
  const one = async (tx: Tenant, { id, patch, ifVersion }: Update) => ({
    record: await updateAndLink(tx, entity, id, patch, { ifVersion }),
    created: false,
  })
  // Two of them could close a circle together.
  const own = referencesOf(kind, entity).map(([name]) => name)
  const alone = ({ patch }: Update) => patch.associations != null || own.some((name) => patch[name] != null)
  return inWaves(
    updates.map(({ id }) => id),
    (places) => inSets(tx, pick(updates, places), alone, (tx, set) => updateSet(tx, kind, set), one),
  )
}

export interface Upsert {
  /** What `upsertSchema` parsed: what a record that is there gets. */
  patch: RecordInput
  /** What `createSchema` parsed, or what it refused, which matters only where there is none to update. */
  input: RecordInput | AppError
}

/**
 * Creates or updates, finding each by its value of `by`; one without a value is created, several with one value take
 * effect in order. Errors are those of `upsertRecord`; throws `validation_error` for a `by` that is not unique.
 */
export async function upsertMany(
  tx: Tenant,
  entity: EntityName,
  by: string,
  upserts: Upsert[],
): Promise<Outcome[]> {
  const finder = await finderBy(tx, entity, by)
  const keys = upserts.map(({ patch }) => {
    const value = upsertKey(by, patch)
    return value === undefined ? undefined : finder.keyOf(value)
  })
  const items = upserts.map((upsert, i) => ({ ...upsert, key: keys[i] }))
  return inWaves(keys, (places) => upsertSet(tx, entity, by, finder, pick(items, places)))
}

/** `items`: none has the same key as another. */
async function upsertSet(
  tx: Tenant,
  entity: EntityName,
  by: string,
  finder: Finder,
  items: (Upsert & { key: string | undefined })[],
  looks = LOOKS,
): Promise<Outcome[]> {
  const found = await finder.find(items.flatMap(({ key }) => key ?? []))
  const outcomes: Outcome[] = new Array(items.length)
  const creates: { place: number; input: RecordInput }[] = []
  const updates: ({ place: number } & Update)[] = []
  for (const [place, { input, patch, key }] of items.entries()) {
    const ids = found.get(key ?? '') ?? []
    if (ids.length > 1) outcomes[place] = { error: severalMatch(entity, by, ids) }
    else if (ids[0]) updates.push({ place, id: ids[0], patch })
    else if (input instanceof AppError) outcomes[place] = { error: input }
    else creates.push({ place, input })
  }
  const inputs = creates.map(({ input }) => input)
  for (const [i, outcome] of (await createMany(tx, entity, inputs)).entries())
    outcomes[creates[i]!.place] = outcome
  for (const [i, outcome] of (await updateMany(tx, entity, updates)).entries())
    outcomes[updates[i]!.place] = outcome
  const overtaken = (creating: boolean) => (place: number) => {
    const outcome = outcomes[place]!
    return 'error' in outcome && isOvertaken(outcome.error, creating)
  }
  const lost = [
    ...creates.map(({ place }) => place).filter(overtaken(true)),
    ...updates.map(({ place }) => place).filter(overtaken(false)),
  ]
  if (lost.length === 0 || looks === 1) return outcomes
  const again = await upsertSet(tx, entity, by, finder, pick(items, lost), looks - 1)
  for (const [i, outcome] of again.entries()) outcomes[lost[i]!] = outcome
  return outcomes
}

async function createSet(tx: Tenant, kind: Kind, inputs: RecordInput[]): Promise<Outcome[]> {
  const [rules, currency] = await Promise.all([holdRules(tx, kind.entity), currencyFor(tx, kind, inputs)])
  const prepared = inputs.map(({ associations: _, ...values }) =>
    attempt(() => creation(tx.actor, kind, currency(values), rules)),
  )
  const writes = prepared.flatMap((one) => ('error' in one ? [] : [one]))
  const refused = await refusals(tx, kind, rules, writes)
  const sound = writes.filter(({ record }) => !refused.has(record.id))
  await write(tx, kind, rules, sound)
  return prepared.map((one): Outcome => {
    if ('error' in one) return one
    const error = refused.get(one.record.id)
    return error ? { error } : { record: one.record, created: true }
  })
}

/** Why some of the new records cannot be written, by id. */
async function refusals(
  tx: Tenant,
  kind: Kind,
  rules: Rules,
  writes: Write[],
): Promise<Map<string, AppError>> {
  const [issues, taken] = await Promise.all([
    referenceIssues(tx, kind, writes),
    takenExternalIds(tx, kind, writes),
  ])
  const refused = new Map([...issues].map(([id, found]) => [id, invalid(found)]))
  for (const { record } of writes) {
    if (refused.has(record.id) || typeof record.external_id !== 'string') continue
    if (taken.has(record.external_id)) refused.set(record.id, externalIdTaken(kind, record))
    taken.add(record.external_id)
  }
  const rest = writes.filter(({ record }) => !refused.has(record.id))
  for (const [id, error] of await uniqueTaken(tx, kind, rules, rest)) refused.set(id, error)
  return refused
}

async function updateSet(tx: Tenant, kind: Kind, updates: Update[]): Promise<Outcome[]> {
  const fields = updates.some(({ patch }) => patch.custom_fields !== undefined)
  const [rules, before] = await Promise.all([
    fields ? holdRules(tx, kind.entity) : undefined,
    lockRecords(
      tx,
      kind.entity,
      updates.map(({ id }) => id),
    ),
  ])
  const missing = new Map<string, AppError>()
  for (const { id } of updates) if (!before.has(id)) missing.set(id, await recordNotFound(tx, kind, id))
  const nexts = updates.map(({ id, patch, ifVersion }) =>
    attempt(() => {
      const record = before.get(id)
      if (!record) throw missing.get(id)
      requireVersion(kind.object, record.version, ifVersion)
      return {
        before: record,
        given: patch,
        next: patched(record, patch, patch.custom_fields === undefined ? undefined : rules),
      }
    }),
  )
  const currency = await currencyFor(
    tx,
    kind,
    nexts.flatMap((one) => ('error' in one ? [] : [one.next])),
  )
  const changes = nexts.map((one) =>
    'error' in one
      ? one
      : attempt(() => ({ ...one, write: change(tx.actor, kind, one.before, one.given, currency(one.next)) })),
  )
  const writes = changes.flatMap((one) => ('error' in one ? [] : (one.write ?? [])))
  const wrong = await referenceIssues(
    tx,
    kind,
    writes.map(({ record, previous }) => ({ record, only: Object.keys(previous) })),
  )
  await write(
    tx,
    kind,
    rules,
    writes.filter(({ record }) => !wrong.has(record.id)),
  )
  return changes.map((one): Outcome => {
    if ('error' in one) return one
    const issues = wrong.get(one.before.id)
    return issues ? { error: invalid(issues) } : { record: one.write?.record ?? one.before, created: false }
  })
}

async function write(tx: Tenant, kind: Kind, rules: Rules | undefined, writes: Write[]): Promise<void> {
  try {
    await writeRecords(tx, kind, writes)
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    throw conflict('one of them has an external_id that is in use')
  }
  if (rules) await claimUnique(tx, kind, rules, writes)
  await linkPrimaries(tx, kind, writes)
}

/** Fills in the organization's currency where it is missing, reading it at most once. */
async function currencyFor(tx: Tenant, kind: Kind, all: RecordInput[]) {
  const lacks = (values: RecordInput) => lacksCurrency(kind, values)
  const currency = all.some(lacks) ? await organizationCurrency(tx) : undefined
  return (values: RecordInput) => (lacks(values) ? { ...values, currency } : values)
}

async function takenExternalIds(tx: Tenant, kind: Kind, writes: Write[]): Promise<Set<string>> {
  const wanted = writes.flatMap(({ record }) => (record.external_id as string | null) ?? [])
  if (wanted.length === 0) return new Set()
  const rows = await tx
    .trx(kind.entity)
    .where({ organization_id: tx.organizationId })
    .whereNull('deleted_at')
    .where('external_id', tx.trx.raw('any(?)', [wanted]))
    .select<{ external_id: string }[]>('external_id')
  return new Set(rows.map((row) => row.external_id))
}
