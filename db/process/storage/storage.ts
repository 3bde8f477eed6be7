import type { Readable } from 'node:stream'

/**
 * Keeps the sealed contents of files, outside of the database. A key is written once, by one writer; the row of the file
 * in the database is older than its content, and is deleted before it.
 */
export interface FileStorage {
  /** Resolves once the content is durable. If it throws, nothing can be read under the key. */
  write(key: string, content: AsyncIterable<Buffer>): Promise<void>
  /** The content, which the caller reads or destroys; undefined if there is none. */
  read(key: string): Promise<Readable | undefined>
  /** Deletes the content, and what an interrupted `write` has left. Without effect if there is none. */
  delete(key: string): Promise<void>
  /** Writes and deletes a small object. Throws ConfigError if the settings are wrong, other errors if it is away. */
  check(): Promise<void>
}

/** The key of a file's content: some hundred folders for each organization, by the random end of a UUIDv7. */
export const contentKey = (organizationId: string, id: string): string =>
  `${organizationId}/${id.slice(-2)}/${id}`
