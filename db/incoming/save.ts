import type { Mapped } from '../model/incoming/mapping/types.ts'
import type { IncomingWebhook, TargetKind, Write } from '../model/incoming/types.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { type AgxRecord, createSchema, REQUEST_TRACE, type RecordInput } from '../model/records/schemas.ts'
import { upsertKey } from '../model/records/upsert-keys.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { companiesNamed } from '../records/companies.ts'
import { createSet } from '../records/create.ts'
import { finderBy } from '../records/find-by-key.ts'
import { type Outcome, recordOf } from '../records/sets.ts'
import { updateSet } from '../records/update.ts'
import { upsertKeyed, upsertRecord } from '../records/upsert.ts'
import { newestNotes } from './newest-notes.ts'

export interface Saved {
  action: Write
  record: Record<string, unknown> & { id: string }
  warnings?: string[]
}

/** The mapping of a payload, and its request where it is not that of the transaction. */
export interface ToSave {
  mapped: Mapped
  trace?: TraceContext | undefined
  /** The request has no delivery id: it may be a repetition of its sender. */
  mayRepeat?: boolean
}

type DeduplicationSettings = Pick<IncomingWebhook, 'deduplication'> & { kind: TargetKind }

/** How the values of a payload join those of an existing record. */
const ADDING = { addressParts: true, tags: true } as const

/**
 * Writes mapped records by the webhook's deduplication rule, as if one after the other, with a constant number of
 * statements where their keys differ. If several records have the key, the oldest matches; a payload without the key
 * creates a record. A mapped note is added unless the payload is skipped, or may be a repetition and the newest note of
 * its record is the same.
 * Throws `validation_error`, `conflict` if one of them cannot be written; then all must be rolled back.
 */
export async function saveAll(tx: Tenant, webhook: DeduplicationSettings, all: ToSave[]): Promise<Saved[]> {
  const save = { Skip: skipOrCreate, Update: updateOrCreate, 'Create Anyway': createAnyway }
  const saved = await save[webhook.deduplication.action](tx, webhook, all)
  await addNotes(tx, webhook.kind, all, saved)
  return saved
}

/** Writes the mapped values to the record that an earlier writing of the same payload made. Throws not_found, too. */
export async function updateMapped(
  tx: Tenant,
  webhook: DeduplicationSettings,
  mapped: Mapped,
  id: string,
): Promise<Saved> {
  const [fields] = await fieldsOf(tx, [{ mapped }])
  const update = { id, patch: changes(fields!, mapped), adding: ADDING }
  const record = recordOf(await updateSet(tx, webhook.kind, [update]))
  return { action: 'updated', record }
}

async function skipOrCreate(tx: Tenant, webhook: DeduplicationSettings, all: ToSave[]): Promise<Saved[]> {
  const kind = webhook.kind
  const finder = await finderBy(tx, kind, keyFieldOf(webhook))
  const keys = all.map(({ mapped }) => finder.keyOf(mapped.fields))
  const found = await finder.find(keys.flatMap((key) => key ?? []))
  const isNew = (place: number) => {
    const key = keys[place]
    return key === undefined || (!found.has(key) && keys.indexOf(key) === place)
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
    return { action: 'skipped', record: { id: found.get(key!)?.[0] ?? byKey.get(key)! } }
  })
}

async function updateOrCreate(tx: Tenant, webhook: DeduplicationSettings, all: ToSave[]): Promise<Saved[]> {
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

async function createAnyway(tx: Tenant, webhook: DeduplicationSettings, all: ToSave[]): Promise<Saved[]> {
  const fields = await fieldsOf(tx, all)
  // The id of a known sender identifies duplicates; here they are wanted.
  for (const [i, { mapped }] of all.entries()) if (mapped.sender) delete fields[i]!.external_id
  return created(await create(tx, webhook.kind, fields))
}

const created = (records: AgxRecord[]): Saved[] => records.map((record) => ({ action: 'created', record }))

async function create(tx: Tenant, kind: KindName, inputs: RecordInput[]): Promise<AgxRecord[]> {
  return (await createSet(tx, kind, inputs)).map((outcome: Outcome) => recordOf([outcome]))
}

/** The field whose value identifies duplicates. */
function keyFieldOf({ kind, deduplication: { by } }: DeduplicationSettings): string {
  if (by.startsWith('custom_fields.')) return by
  return by === 'email' && kinds[kind].fields.email ? 'email' : 'external_id'
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
    if (!note?.trim() || action === 'skipped') return []
    const input: RecordInput = {
      ...createSchema('notes').parse({ body: note, associations: [{ object: kind, id: record.id }] }),
      [REQUEST_TRACE]: trace,
    }
    return [{ input, mayRepeat, saved: saved[i]! }]
  })
  const known = noted.filter(({ mayRepeat, saved }) => mayRepeat && saved.action === 'updated')
  const newest = await newestNotes(tx, kind, [...new Set(known.map(({ saved }) => saved.record.id))])
  const notes: RecordInput[] = []
  for (const { input, mayRepeat, saved } of noted) {
    const body = String(input.body)
    const isRepeated = mayRepeat && newest.get(saved.record.id) === body
    if (isRepeated) saved.warnings = [REPEATED_NOTE]
    else notes.push(input)
    newest.set(saved.record.id, body)
  }
  await create(tx, 'notes', notes)
}

const REPEATED_NOTE =
  'the note was not added: the newest one of the record, of the last 5 minutes, is the same'
