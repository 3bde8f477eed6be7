import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The files of imports, in UTF-8, as pieces of equal size, so that the piece of a byte offset can be computed. With
 * larger pieces a resume reads more again; with smaller ones an upload needs more statements.
 */
export const PIECE_BYTES = 65_536

/** Adds pieces of an upload, numbered from `from`. All pieces except the last are full. */
export async function addPieces(tx: Tenant, uploadId: string, from: number, pieces: Buffer[]): Promise<void> {
  const organization_id = tx.organizationId
  await tx
    .trx('import_pieces')
    .insert(pieces.map((bytes, i) => ({ organization_id, upload_id: uploadId, piece: from + i, bytes })))
}

/** The file from byte offset `byte`; each piece is read in a separate transaction of `tenant`. */
export async function* readPieces(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  uploadId: string,
  byte: number,
): AsyncGenerator<Buffer, void, void> {
  let skip = byte % PIECE_BYTES
  for (let piece = Math.floor(byte / PIECE_BYTES); ; piece++) {
    const row = await tenant((tx) =>
      tx
        .trx('import_pieces')
        .where({ organization_id: tx.organizationId, upload_id: uploadId, piece })
        .first<{ bytes: Buffer } | undefined>('bytes'),
    )
    if (!row) return
    yield row.bytes.subarray(skip)
    if (row.bytes.length < PIECE_BYTES) return
    skip = 0
  }
}

export async function deletePieces(tx: Tenant, uploadId: string): Promise<void> {
  await tx.trx('import_pieces').where({ organization_id: tx.organizationId, upload_id: uploadId }).delete()
}
