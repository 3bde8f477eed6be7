import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { v7 as uuidv7 } from 'uuid'
import { AppError, invalid } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { Logger } from '../process/log.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'
import { DamagedContent, openStream, sealStream } from '../process/storage/sealed-stream.ts'
import { contentKey, type FileStorage } from '../process/storage/storage.ts'
import {
  abandonFile,
  extendReservation,
  type FileRow,
  type NewFile,
  type ReceivedFile,
  type Reservation,
  reserveFile,
  tooLarge,
} from './files.ts'

type Transactions = <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>

/** The owner that the key of a file's content is sealed for, and that its content is bound to. */
export const ownerOfFile = (organizationId: string, id: string) => `${organizationId}.file.${id}`

/** Time for receiving a content, far shorter than the time after which `purge.ts` gives it up. */
const RECEIVE_MS = 3_600_000

/** How often a reservation is renewed, far shorter than the time for which it holds. */
const RENEW_MS = 60_000

/** Files of organizations: their rows in the database, their sealed contents in the storage. */
export class FileStore {
  private readonly storage: FileStorage | undefined
  private readonly keys: SecretsKey
  private readonly log: Logger

  constructor({ storage, keys, log }: { storage: FileStorage | undefined; keys: SecretsKey; log: Logger }) {
    this.storage = storage
    this.keys = keys
    this.log = log
  }

  /**
   * Receives a content as a stream. The file is accepted by `storeFiles`, in the transaction that makes it visible; if
   * that never happens, it is given up. Throws the error of `content`; `validation_error` for an empty one;
   * `payload_too_large`, `quota_exceeded`; `unavailable`.
   */
  async receive(
    organizationId: string,
    tenant: Transactions,
    given: Pick<NewFile, 'name' | 'content_type' | 'bytes' | 'run_id'>,
    content: AsyncIterable<Buffer>,
  ): Promise<ReceivedFile> {
    const storage = this.required()
    const id = uuidv7()
    const owner = ownerOfFile(organizationId, id)
    const key = randomBytes(32)
    const key_sealed = seal(this.keys, key.toString('base64'), owner)
    const reservation = await tenant((tx) => reserveFile(tx, { ...given, id, key_sealed }))
    const measured = new Measured(content, reservation, (received, reserved) =>
      tenant((tx) => extendReservation(tx, id, received, reserved)),
    )
    try {
      await storage.write(
        contentKey(organizationId, id),
        sealStream(key, Buffer.from(owner), measured.bytes()),
      )
      return { id, size: measured.size, sha256: measured.hash.digest() }
    } catch (error) {
      // Otherwise the purge does it.
      await tenant((tx) => abandonFile(tx, id)).catch(() => {})
      throw measured.failure ?? this.unavailable(error)
    }
  }

  /**
   * The content of a file, opened as it is read; the caller reads or destroys it. Throws `unavailable`, `not_found` if
   * the storage has lost it.
   */
  async read(
    organizationId: string,
    { id, key_sealed }: Pick<FileRow, 'id' | 'key_sealed'>,
  ): Promise<Readable> {
    const storage = this.required()
    const owner = ownerOfFile(organizationId, id)
    const key = this.opened(key_sealed, owner)
    const sealed = await storage.read(contentKey(organizationId, id)).catch((error: unknown) => {
      throw this.unavailable(error)
    })
    if (!sealed) {
      this.log.error(
        { organization_id: organizationId, file_id: id },
        'the storage of files has lost a content',
      )
      throw new AppError('not_found', 'the content of the file is not in the storage', {
        hint: 'the api and all workers need the same FILES_DIR or FILES_S3_BUCKET',
      })
    }
    const content = Readable.from(this.checked(openStream(key, Buffer.from(owner), sealed), id))
    // Also where nobody has begun to read it.
    content.once('close', () => sealed.destroy())
    return content
  }

  /** Throws `unavailable` where the storage breaks off, `internal_error` where the content is damaged. */
  private async *checked(content: AsyncIterable<Buffer>, id: string): AsyncGenerator<Buffer, void, void> {
    try {
      yield* content
    } catch (error) {
      if (!(error instanceof DamagedContent)) throw this.unavailable(error)
      this.log.error({ err: error, file_id: id }, 'the content of a file is damaged')
      throw new AppError('internal_error', 'the content of the file is damaged')
    }
  }

  private opened(key_sealed: string, owner: string): Buffer {
    try {
      return Buffer.from(open(this.keys, key_sealed, owner), 'base64')
    } catch (error) {
      this.log.error({ err: error }, 'the key of a file cannot be opened')
      throw new AppError(
        'unavailable',
        'the file was sealed with a SECRETS_KEY that this process does not have',
      )
    }
  }

  private required(): FileStorage {
    if (this.storage) return this.storage
    throw new AppError(
      'conflict',
      'the service keeps no files: its operator has set neither FILES_DIR nor FILES_S3_BUCKET',
    )
  }

  private unavailable(error: unknown): AppError {
    if (error instanceof AppError) return error
    this.log.error({ err: error }, 'the storage of files is not available')
    return new AppError('unavailable', 'the storage of files is not available: try again', { retry_after: 5 })
  }
}

/** Counts and hashes a content while it is read, keeps its bytes reserved, and remembers why it could not be read. */
class Measured {
  size = 0
  readonly hash = createHash('sha256')
  failure: unknown
  private readonly content: AsyncIterable<Buffer>
  private readonly reservation: Reservation
  private readonly extend: (received: number, reserved: number) => Promise<number>

  constructor(
    content: AsyncIterable<Buffer>,
    reservation: Reservation,
    extend: (received: number, reserved: number) => Promise<number>,
  ) {
    this.content = content
    this.reservation = reservation
    this.extend = extend
  }

  async *bytes(): AsyncGenerator<Buffer, void, void> {
    const { largest } = this.reservation
    const until = Date.now() + RECEIVE_MS
    let reserved = this.reservation.bytes
    let renewedAt = Date.now()
    try {
      for await (const part of this.content) {
        this.size += part.length
        if (this.size > largest) throw tooLarge(largest)
        if (Date.now() > until)
          throw new AppError('invalid_request', 'the file was sent for more than an hour')
        if (this.size > reserved || Date.now() - renewedAt > RENEW_MS) {
          reserved = await this.extend(this.size, reserved)
          renewedAt = Date.now()
        }
        this.hash.update(part)
        yield part
      }
      if (this.size === 0)
        throw invalid([{ loc: ['body', 'file'], msg: 'the file is empty', type: 'too_short' }])
    } catch (error) {
      this.failure = error
      throw error
    }
  }
}
