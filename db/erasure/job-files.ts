import { expireExport } from '../files/moves/exports.ts'
import type { Finder } from '../model/erasure/person.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { Treated } from './treat.ts'

/** The files of imports and exports, as pieces: a file that names the person is deleted as a whole. */
interface FilesPlace {
  object: 'import_file' | 'export_file'
  /** SQL: jobs with a file, `at` the next of them in the order of their ids. */
  jobs: string
  pieces: string
  drop(tx: Tenant, job: Job): Promise<Treated>
}

interface Job {
  id: string
  status: string
  starts: number
  /** The file that the pieces belong to. */
  file_id: string
}

export const FILES: readonly FilesPlace[] = [
  {
    object: 'import_file',
    jobs: 'select id, status, starts, upload_id as file_id from imports where upload_id is not null',
    pieces: 'select piece, bytes from import_pieces where upload_id = ?',
    async drop(tx, { id, status, starts, file_id }) {
      // It would write the person anew: people decide.
      if (starts === 0) return { object: 'import', id, reason: 'key' }
      if (status === 'queued' || status === 'running') return 'busy'
      const of = { organization_id: tx.organizationId }
      await tx
        .trx('imports')
        .where({ ...of, id })
        .update({ upload_id: null })

      for (const table of ['import_errors', 'import_keys'])
        await tx
          .trx(table)
          .where({ ...of, import_id: id })
          .delete()
      await tx
        .trx('import_pieces')
        .where({ ...of, upload_id: file_id })
        .delete()
      return 'erased'
    },
  },
  {
    object: 'export_file',
    jobs: 'select id, status, starts, id as file_id from exports where pieces > 0',
    pieces: 'select piece, bytes from export_pieces where export_id = ?',
    async drop(tx, { id, status }) {
      if (status === 'queued' || status === 'running') return 'busy'
      const key = { organization_id: tx.organizationId, id }
      await expireExport(tx.trx, key)
      await tx.trx('export_pieces').where({ organization_id: tx.organizationId, export_id: id }).delete()
      await tx.trx('exports').where(key).update({ pieces: 0 })

      return 'erased'
    },
  },
]

/** Pieces that one transaction reads. */
const PIECES = 16
/** Bytes of a piece that are read with the next one: a name may be in two. */
const OVERLAP = 512

/** Where a search of files goes on: in a file, or after it. */
export type FileCursor = [job: string, piece: string]

/** Searches the next pieces of one file. @returns what became of it, and where the search goes on; null at the end. */
export async function searchFile(
  tx: Tenant,
  place: FilesPlace,
  person: Finder,
  cursor: FileCursor | null,
): Promise<{ treated: Treated; cursor: FileCursor | null }> {
  const [after, from] = cursor ?? ['00000000-0000-0000-0000-000000000000', '0']
  // In the middle of a file its own row is read again.
  const isWithin = from !== '0'
  const { rows } = await tx.trx.raw<{ rows: Job[] }>(
    `${place.jobs} and organization_id = ? and id ${isWithin ? '>=' : '>'} ? order by id limit 1 for no key update`,
    [tx.organizationId, after],
  )
  const job = rows[0]
  if (!job) return { treated: 'unchanged', cursor: null }
  const first = isWithin && job.id === after ? Number(from) : 0
  const { rows: pieces } = await tx.trx.raw<{ rows: { piece: number; bytes: Buffer }[] }>(
    `${place.pieces} and organization_id = ? and piece >= ? order by piece limit ${PIECES}`,
    [job.file_id, tx.organizationId, Math.max(0, first - 1)],
  )
  const text = Buffer.concat(
    pieces.map(({ piece, bytes }) => (piece < first ? bytes.subarray(-OVERLAP) : bytes)),
  ).toString()
  if (person.redact(text, false) !== text)
    return { treated: await place.drop(tx, job), cursor: [job.id, '0'] }
  const isEnd = pieces.length < PIECES
  return { treated: 'unchanged', cursor: [job.id, isEnd ? '0' : String(pieces.at(-1)!.piece + 1)] }
}
