import type { FileReference } from '../../workflows/shared/files.ts'
import { limitOf, lockSubscription } from '../access/plans.ts'
import { pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockRecord } from '../records/lock.ts'
import { findRecord, getRecord } from '../records/read.ts'

/**
 * The rows of files. A row is inserted before the first byte of its content is written, and stored after the last one;
 * deleted, it queues the deletion of the content (`deletions.ts`). So a process that dies at any moment leaves a row
 * that tells what is left: `purge.ts` deletes the rows of contents that nobody finished.
 */
export interface FileRow {
  id: string
  name: string
  content_type: string
  size: number
  sha256: Buffer
  key_sealed: string
  origin: 'upload' | 'run'
  run_id: string | null
  entity: KindName | null
  record_id: string | null
  created_by: Actor
  created_at: Date
}

const COLUMNS = [
  'id',
  'name',
  'content_type',
  'size',
  'sha256',
  'key_sealed',
  'origin',
  'run_id',
  'entity',
  'record_id',
  'created_by',
  'created_at',
] as const satisfies (keyof FileRow)[]

const files = (tx: Tenant) => tx.trx('files').where({ organization_id: tx.organizationId })

/** SQL: the bytes with which a file counts, at least a block of the disk. */
const COUNTED = 'greatest(size, 4096)'

/** Minutes for which bytes stay reserved. Who receives a content renews that: `store.ts`. */
const RESERVED_MINUTES = 5

/** The bytes of the organization's files, with those that are reserved for files that are being received. */
export async function fileBytes(tx: Tenant): Promise<number> {
  const { stored, reserved } = await bytesBeside(tx, null)
  return stored + reserved
}

/** The bytes of the organization's other files. What a killed process had reserved is soon free again. */
async function bytesBeside(tx: Tenant, id: string | null): Promise<{ stored: number; reserved: number }> {
  const { rows } = await tx.trx.raw<{ rows: { stored: string; reserved: string }[] }>(
    `select coalesce(sum(${COUNTED}) filter (where status = 'stored'), 0) as stored,
       coalesce(sum(${COUNTED}) filter (
         where status = 'uploading' and created_at > now() - interval '${RESERVED_MINUTES} minutes'), 0) as reserved
     from files where organization_id = ? and id is distinct from ?::uuid`,
    [tx.organizationId, id],
  )
  const { stored, reserved } = rows[0]!
  return { stored: Number(stored), reserved: Number(reserved) }
}

/** What is known of a file before its content. */
export interface NewFile {
  id: string
  name: string
  content_type: string
  key_sealed: string
  /** The length of the content, if it is known. */
  bytes: number | undefined
  /** The run that receives it; an upload has none. */
  run_id: string | null
}

/** What is reserved for a content. */
export interface Reservation {
  bytes: number
  /** The most bytes that the content may have. */
  largest: number
}

/** Bytes that are reserved first for a content of unknown length; the reservation grows with what is received. */
const FIRST_BYTES = 1_048_576

/**
 * Inserts the row of a file that is about to be received, and reserves its bytes. Throws `payload_too_large`; as
 * `extendReservation` does.
 */
export async function reserveFile(tx: Tenant, file: NewFile): Promise<Reservation> {
  const { bytes: length, ...row } = file
  const subscription = await lockSubscription(tx)
  const largest = limitOf(subscription, 'largest_file')
  if (length !== undefined && length > largest) throw tooLarge(largest)
  const limit = limitOf(subscription, 'file_bytes')
  const bytes = await room(tx, limit, null, { least: length ?? 1, wanted: length ?? FIRST_BYTES })
  await tx.trx('files').insert({
    ...row,
    organization_id: tx.organizationId,
    size: Number.isFinite(bytes) ? bytes : 0,
    origin: file.run_id === null ? 'upload' : 'run',
    status: 'uploading',
    created_by: JSON.stringify(tx.actor),
  })
  return { bytes, largest }
}

/**
 * Renews the reservation of a content of which `received` bytes have arrived, and doubles it where they are more.
 * @returns the reserved bytes. Throws `quota_exceeded`; `unavailable` if only what others reserve is in the way.
 */
export async function extendReservation(
  tx: Tenant,
  id: string,
  received: number,
  reserved: number,
): Promise<number> {
  const limit = limitOf(await lockSubscription(tx), 'file_bytes')
  const wanted = received > reserved ? 2 * received : reserved
  const bytes = await room(tx, limit, id, { least: received, wanted })
  await files(tx)
    .where({ id, status: 'uploading' })
    .update({ created_at: tx.trx.fn.now(), ...(Number.isFinite(bytes) && { size: bytes }) })
  return bytes
}

/** The bytes that a file may reserve: at least `least`. The subscription is locked, so that nobody else takes them. */
async function room(
  tx: Tenant,
  limit: number,
  id: string | null,
  { least, wanted }: { least: number; wanted: number },
): Promise<number> {
  if (!Number.isFinite(limit)) return Number.POSITIVE_INFINITY
  const { stored, reserved } = await bytesBeside(tx, id)
  const left = Math.max(0, limit - stored - reserved)
  if (least <= left) return Math.min(wanted, left)
  if (least > limit - stored) throw quotaExceeded(limit, Math.max(0, limit - stored))
  throw new AppError(
    'unavailable',
    `the plan allows ${limit} bytes of files, of which ${reserved} are reserved for files that are being received`,
    { hint: 'try again when they have been received', retry_after: 30 },
  )
}

export const tooLarge = (largest: number) =>
  new AppError('payload_too_large', `the file is larger than ${largest} bytes`, {
    hint: 'the plan limits the size of a file: largest_file in GET /app/usage',
  })

const quotaExceeded = (limit: number, left: number) =>
  new AppError(
    'quota_exceeded',
    `the plan allows ${limit} bytes of files, of which ${left} are left: the file has more`,
    { hint: 'delete files, or change the plan: file_bytes in GET /app/usage' },
  )

/** A content that was received completely. */
export interface ReceivedFile {
  id: string
  size: number
  sha256: Buffer
}

/**
 * Accepts files whose contents were received. Throws `conflict` if a row is gone: the purge has given the file up, or
 * the run was purged.
 */
export async function storeFiles(tx: Tenant, received: readonly ReceivedFile[]): Promise<void> {
  for (const { id, size, sha256 } of received) {
    const stored = await files(tx)
      .where({ id, status: 'uploading' })
      .update({ status: 'stored', size, sha256 })
    if (stored === 0) throw conflict('the file was given up: it was received for too long')
  }
}

/** Gives a file up that was not stored. */
export const abandonFile = (tx: Tenant, id: string) => files(tx).where({ id, status: 'uploading' }).delete()

/** A stored file. Throws `not_found`, also for a file of another organization. */
export async function getFile(tx: Tenant, id: string): Promise<FileRow> {
  const row = await files(tx)
    .where({ id, status: 'stored' })
    .first<FileRow | undefined>(...COLUMNS)
  if (!row) throw notFound('file', 'it may have been purged with its run, or deleted')
  if (row.entity && row.record_id && !(await findRecord(tx, row.entity, row.record_id)))
    throw notFound('file', 'its record is deleted, and a restore of the record brings it back')
  return row
}

/** Deletes a file. */
export const deleteFile = async (tx: Tenant, id: string): Promise<void> => {
  await files(tx).where({ id }).delete()
}

/** The files of a record, newest first. Throws `not_found`. */
export async function listFiles(
  tx: Tenant,
  entity: KindName,
  recordId: string,
  page: { limit: number; offset: number; cursor?: string | undefined },
): Promise<Page<FileRow>> {
  await getRecord(tx, entity, recordId)
  const rows = files(tx)
    .where({ entity, record_id: recordId, status: 'stored' })
    .select(...COLUMNS)
  return pageById<FileRow>(tx, rows, page, { of: ['files', entity, recordId] })
}

/**
 * Attaches a stored file to a record: the file is then kept as long as the record. A record has a content under one name
 * once: if it already has it, that file is returned, and this one stays as it is. Throws `not_found`, `conflict` for the
 * file of another record.
 */
export async function attachFile(
  tx: Tenant,
  id: string,
  entity: KindName,
  recordId: string,
): Promise<FileRow> {
  await lockRecord(tx, entity, recordId)
  const file = await getFile(tx, id)
  if (file.record_id === recordId) return file
  if (file.record_id !== null)
    throw conflict(`the file belongs to the ${kinds[file.entity!].object} ${file.record_id}`, {
      hint: 'a file has one record: receive it again for another one',
    })
  const { name, sha256 } = file
  const same = await files(tx)
    .where({ entity, record_id: recordId, name, sha256, status: 'stored' })
    .first<FileRow | undefined>(...COLUMNS)
  if (same) return same
  await files(tx).where({ id }).update({ entity, record_id: recordId })
  return { ...file, entity, record_id: recordId }
}

/** Moves the files of a record that is merged into another, except those that the other one has. */
export async function moveFiles(tx: Tenant, entity: KindName, from: string, to: string): Promise<void> {
  await tx.trx.raw(
    `update files f set record_id = :to
     where f.organization_id = :organizationId and f.entity = :entity and f.record_id = :from and not exists (
       select from files o where o.organization_id = f.organization_id and o.entity = f.entity
         and o.record_id = :to and o.name = f.name and o.sha256 = f.sha256)`,
    { organizationId: tx.organizationId, entity, from, to },
  )
}

export const referenceTo = ({ id, name, content_type, size }: FileRow): FileReference => ({
  file_id: id,
  name,
  content_type,
  size,
})
