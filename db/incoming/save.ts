import { noNewRecord } from '../model/incoming/fit.ts'
import { keyFieldOf } from '../model/incoming/mapping/record-key.ts'
import type { Mapped } from '../model/incoming/mapping/types.ts'
import { toDetails } from '../model/incoming/refusals.ts'
import type { IncomingWebhook, TargetKind, Write } from '../model/incoming/types.ts'
import type { KindName } from '../model/records/kind.ts'
import { type AgxRecord, createSchema, REQUEST_TRACE, type RecordInput } from '../model/records/schemas.ts'
import { upsertKey } from '../model/records/upsert-keys.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { companiesNamed } from '../records/companies.ts'
import { createSet } from '../records/create.ts'
import { finderBy } from '../records/find-by-key.ts'
import { inWaves, type Outcome, recordOf } from '../records/sets.ts'
import { updateMany, updateSet } from '../records/update.ts'
import { upsertKeyed, upsertRecord } from '../records/upsert.ts'
import { idBeside, type Owner, ofTwoRecords, ownersOf } from './known-ids.ts'
import { newestNotes } from './newest-notes.ts'

/** `record`: null for a payload that only updates, and whose record does not exist. */
export interface Saved {
  action: Write
  record: (Record<string, unknown> & { id: string }) | null
  warnings?: string[]
}

/** The mapping of a payload, and its request where it is not that of the transaction. */
export interface ToSave {
  mapped: Mapped
  trace?: TraceContext | undefined
  /** The request has no delivery id: it may be a repetition of its sender. */
  mayRepeat?: boolean
}

type DeduplicationConfig = Pick<IncomingWebhook, 'deduplication'> & { kind: TargetKind }

/** How the values of a payload join those of an existing record. */
const ADDING = { addressParts: true, tags: true } as const

/**
 * Writes mapped records by the webhook's deduplication rule, as if one after the other, with a constant number of
 * statements where their keys differ, for each stretch of payloads that all make records or all only update them. If
 * several records have the key, the oldest matches; a payload without the key creates a record, unless its external_id
 * is that of one. A mapped note is added unless the payload is skipped, or may be a repetition and the newest note of its record is the same.
 * Throws `validation_error`, `conflict` if one of them cannot be written; then all must be rolled back.
 */
export async function saveAll(tx: Tenant, webhook: DeduplicationConfig, all: ToSave[]): Promise<Saved[]> {
  const ways = { Skip: skipOrCreate, Update: updateOrCreate, 'Create Anyway': createAnyway }
  const save = ways[webhook.deduplication.action]
  const saved: Saved[] = []
  for (const { way: by, group } of stretches(all, ({ mapped }) => mapped.updates_by))
    saved.push(...(await (by === undefined ? save(tx, webhook, group) : updateBy(tx, webhook, by, group))))
  await addNotes(tx, webhook.kind, all, saved)
  return saved
}

/** Consecutive payloads that are written in one way. */
function stretches<Way>(all: ToSave[], wayOf: (one: ToSave) => Way): { way: Way; group: ToSave[] }[] {
  const found: { way: Way; group: ToSave[] }[] = []
  for (const one of all) {
    const way = wayOf(one)
    const last = found.at(-1)
    if (last && last.way === way) last.group.push(one)
    else found.push({ way, group: [one] })
  }
  return found
}

/** Writes the mapped values to the record that an earlier writing of the same payload made. Throws not_found, too. */
export async function updateMapped(
  tx: Tenant,
  webhook: DeduplicationConfig,
  mapped: Mapped,
  id: string,
): Promise<Saved> {
  const [fields] = await fieldsOf(tx, [{ mapped }])
  const update = { id, patch: changes(fields!, mapped), adding: ADDING }
  const record = recordOf(await updateSet(tx, webhook.kind, [update]))
  return { action: 'updated', record }
}

async function skipOrCreate(tx: Tenant, webhook: DeduplicationConfig, all: ToSave[]): Promise<Saved[]> {
  const kind = webhook.kind
  const finder = await finderBy(tx, kind, keyFieldOf(webhook))
  const keys = all.map(({ mapped }) => finder.keyOf(mapped.fields))
  const found = await finder.find(keys.flatMap((key) => key ?? []))
  const isFound = (place: number) => found.has(keys[place] ?? '')
  const owners = await ownersOf(
    tx,
    webhook,
    all.filter((_, place) => !isFound(place)),
  )
  const isNew = (place: number) => {
    const key = keys[place]
    if (isFound(place) || owners.has(all[place]!)) return false
    return key === undefined || keys.indexOf(key) === place
  }
  const news = [...all.keys()].filter(isNew)
  const created = await create(
    tx,
    kind,
    await fieldsOf(
      tx,
      news.map((place) => all[place]!),
    ),
  )
  const byKey = new Map(news.map((place, i) => [keys[place], created[i]!.id]))
  return keys.map((key, place): Saved => {
    if (isNew(place)) return { action: 'created', record: created[news.indexOf(place)]! }
    const id = found.get(key ?? '')?.[0] ?? owners.get(all[place]!)?.id ?? byKey.get(key)!
    return { action: 'skipped', record: { id } }
  })
}

/** The record with the external_id is the person, also where the payload has another email. */
async function updateOrCreate(tx: Tenant, webhook: DeduplicationConfig, all: ToSave[]): Promise<Saved[]> {
  if (all.every(({ mapped }) => idBeside(webhook, mapped) === undefined)) return upsertAll(tx, webhook, all)
  const by = keyFieldOf(webhook)
  // Payloads that share a key may be of one record.
  const keysOf = ({ mapped }: ToSave) => {
    const [id, key] = [idBeside(webhook, mapped), upsertKey(by, mapped.fields)?.toLowerCase()]
    return [
      ...(id === undefined ? [] : [`external_id ${id}`]),
      ...(key === undefined ? [] : [`${by} ${key}`]),
    ]
  }
  return inWaves(all, keysOf, async (wave) => {
    const owners = await ownersOf(tx, webhook, wave)
    const saved: Saved[] = []
    for (const { way: isKnown, group } of stretches(wave, (one) => owners.has(one)))
      saved.push(
        ...(await (isKnown ? updateOwners(tx, webhook, group, owners) : upsertAll(tx, webhook, group))),
      )
    return saved
  })
}

/** Updates the records with the external_ids of payloads, unless their other keys are those of other records. */
async function updateOwners(
  tx: Tenant,
  webhook: DeduplicationConfig,
  all: ToSave[],
  owners: ReadonlyMap<ToSave, Owner>,
): Promise<Saved[]> {
  const known = all.flatMap((one) => {
    const { id, other } = owners.get(one)!
    return other === undefined ? [{ one, id }] : []
  })
  const written = await updateFound(tx, webhook.kind, known)
  const gone = known.flatMap(({ one }) => (written.has(one) ? [] : one))
  const upserted = new Map((await upsertAll(tx, webhook, gone)).map((saved, i) => [gone[i]!, saved]))
  return all.map((one): Saved => {
    const record = written.get(one)
    if (record) return { action: 'updated', record }
    const { id, other } = owners.get(one)!
    return upserted.get(one) ?? ofTwoRecords(webhook, one.mapped, id, other!)
  })
}

async function upsertAll(tx: Tenant, webhook: DeduplicationConfig, all: ToSave[]): Promise<Saved[]> {
  if (all.length === 0) return []
  const kind = webhook.kind
  const by = keyFieldOf(webhook)
  const fields = await fieldsOf(tx, all)
  const options = { takesOldest: true, adding: ADDING }
  const items = fields.map((input, i) => ({ input, patch: changes(input, all[i]!.mapped) }))
  if (items.length === 1) {
    const { input, patch } = items[0]!
    const { record, created } = await upsertRecord(tx, kind, by, input, patch, options)
    return [{ action: created ? 'created' : 'updated', record }]
  }
  // Without any key its field is not looked at: the definition of a custom field may be gone.
  if (fields.every((input) => upsertKey(by, input) === undefined))
    return created(await create(tx, kind, fields))
  const finder = await finderBy(tx, kind, by)
  const keyed = items.map((item) => ({ ...item, key: finder.keyOf(item.input) }))
  return (await upsertKeyed(tx, finder, keyed, options)).map((outcome) => {
    const record = recordOf([outcome])
    return { action: 'created' in outcome && outcome.created ? 'created' : 'updated', record }
  })
}

/** Updates the records that the field `by` finds; with Skip they stay as they are. */
async function updateBy(
  tx: Tenant,
  webhook: DeduplicationConfig,
  by: string,
  all: ToSave[],
): Promise<Saved[]> {
  const { kind } = webhook
  const finder = await finderBy(tx, kind, by)
  const keys = all.map(({ mapped }) => finder.keyOf(mapped.fields))
  const found = await finder.find(keys.flatMap((key) => key ?? []))
  const ids = keys.map((key) => (key === undefined ? undefined : found.get(key)?.[0]))
  // The companies that the others name are not created.
  const known = all.flatMap((one, i) => (ids[i] ? [{ one, id: ids[i] }] : []))
  const written = await updateFound(tx, kind, webhook.deduplication.action === 'Update' ? known : [])
  return all.map((one, i): Saved => {
    const record = written.get(one)
    if (record) return { action: 'updated', record }
    const isKept = webhook.deduplication.action === 'Skip' && ids[i]
    return isKept ? { action: 'skipped', record: { id: isKept } } : withoutRecord(kind, one.mapped)
  })
}

/** Updates records that were found. @returns those that exist still. */
async function updateFound(
  tx: Tenant,
  kind: TargetKind,
  known: { one: ToSave; id: string }[],
): Promise<Map<ToSave, AgxRecord>> {
  const written = new Map<ToSave, AgxRecord>()
  if (known.length === 0) return written
  const fields = await fieldsOf(
    tx,
    known.map(({ one }) => one),
  )
  const updates = known.map(({ one, id }, i) => ({
    id,
    patch: changes(fields[i]!, one.mapped),
    adding: ADDING,
    keepsKeys: true,
  }))
  for (const [i, outcome] of (await updateMany(tx, kind, updates)).entries())
    if (!isGone(outcome)) written.set(known[i]!.one, recordOf([outcome]))
  return written
}

/** Deleted by another transaction after it was found. */
const isGone = (outcome: Outcome) => 'error' in outcome && outcome.error.type === 'not_found'

/**
 * A known sender tells of users who are no contacts here, and would end the webhook if that was refused; of another sender
 * it is an error. An opt-out of somebody unknown must be seen.
 */
function withoutRecord(kind: TargetKind, mapped: Mapped): Saved {
  const error = noNewRecord(kind, mapped)
  if (mapped.sender === undefined || mapped.fields.do_not_contact === true) throw error
  const missing = Object.entries(toDetails(error.details.issues ?? [])).map((parts) => parts.join(': '))
  return { action: 'skipped', record: null, warnings: [`${error.message}: ${missing.join('; ')}`] }
}

async function createAnyway(tx: Tenant, webhook: DeduplicationConfig, all: ToSave[]): Promise<Saved[]> {
  const fields = await fieldsOf(tx, all)
  // The id of a known sender identifies duplicates; here they are wanted.
  for (const [i, { mapped }] of all.entries()) if (mapped.sender) delete fields[i]!.external_id
  return created(await create(tx, webhook.kind, fields))
}

const created = (records: AgxRecord[]): Saved[] => records.map((record) => ({ action: 'created', record }))

async function create(tx: Tenant, kind: KindName, inputs: RecordInput[]): Promise<AgxRecord[]> {
  return (await createSet(tx, kind, inputs)).map((outcome: Outcome) => recordOf([outcome]))
}

/** The fields from the payload only: the defaults of a new record must not change an existing one. */
const changes = (fields: RecordInput, mapped: Mapped): RecordInput => ({
  ...Object.fromEntries(Object.entries(fields).filter(([field]) => comesFromPayload(field, mapped))),
  [REQUEST_TRACE]: fields[REQUEST_TRACE],
})

function comesFromPayload(field: string, mapped: Mapped): boolean {
  const source = field === 'company_id' ? 'company_name' : field
  return Object.keys(mapped.sources).some((name) => name === source || name.startsWith(`${source}.`))
}

/** The fields of the records, with the companies that the payloads name: found, or created. */
async function fieldsOf(tx: Tenant, all: ToSave[]): Promise<RecordInput[]> {
  const named = all.filter(({ mapped }) => mapped.company_name?.trim())
  const companies =
    named.length === 0
      ? []
      : await companiesNamed(
          tx,
          named.map(({ mapped, trace }) => ({
            ...createSchema('companies').parse({ name: mapped.company_name }),
            [REQUEST_TRACE]: trace,
          })),
        )
  for (const company of companies) if ('error' in company) throw company.error
  const ids = new Map(named.map((one, i) => [one, (companies[i] as { id: string }).id]))
  return all.map((one) => ({
    ...one.mapped.fields,
    ...(ids.has(one) ? { company_id: ids.get(one) } : {}),
    [REQUEST_TRACE]: one.trace,
  }))
}

async function addNotes(tx: Tenant, kind: TargetKind, all: ToSave[], saved: Saved[]): Promise<void> {
  const noted = all.flatMap(({ mapped: { note }, trace, mayRepeat }, i) => {
    const { action, record } = saved[i]!
    if (!note?.trim() || action === 'skipped' || !record) return []
    const input: RecordInput = {
      ...createSchema('notes').parse({ body: note, associations: [{ object: kind, id: record.id }] }),
      [REQUEST_TRACE]: trace,
    }
    return [{ input, mayRepeat, saved: saved[i]!, id: record.id }]
  })
  const known = noted.filter(({ mayRepeat, saved }) => mayRepeat && saved.action === 'updated')
  const newest = await newestNotes(tx, kind, [...new Set(known.map(({ id }) => id))])
  const notes: RecordInput[] = []
  for (const { input, mayRepeat, saved, id } of noted) {
    const body = String(input.body)
    const isRepeated = mayRepeat && newest.get(id) === body
    if (isRepeated) saved.warnings = [REPEATED_NOTE]
    else notes.push(input)
    newest.set(id, body)
  }
  await create(tx, 'notes', notes)
}

const REPEATED_NOTE =
  'the note was not added: the newest one of the record, of the last 5 minutes, is the same'
