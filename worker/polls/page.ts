import type { HttpClient } from '../../activities/http/client.ts'
import type { OpenMailboxes } from '../../activities/mail/mailbox.ts'
import type { PollState } from '../../db/incoming/polls.ts'
import type { SourceItem } from '../../db/model/incoming/source.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { IncomingThreads } from './incoming-threads.ts'

/** A reason for which a poll ends, as its owner reads it in `poll_problem`. */
export class Problem extends Error {
  /** See `PollEnd`. */
  readonly isRefused: boolean

  constructor(message: string, { isRefused = false } = {}) {
    super(message)
    this.isRefused = isRefused
  }
}

export type InTenant = <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>

/** What a page of a source is read by. */
export interface PageDeps {
  http: Pick<HttpClient, 'call'>
  openMailbox: OpenMailboxes
  secretsKey: SecretsKey
  threads: IncomingThreads
}

/** What a source lists from a place on. */
export interface Page {
  items: SourceItem[]
  /** Where the next page begins. */
  cursor: string | undefined
  /** Nothing more is listed now. */
  isLast: boolean
  /** What the owner needs to know, though the page was read. */
  notice?: string | undefined
}

/** Reads the pages of one poll. Throws NodeError, Problem. */
export interface PageReader {
  read(state: PollState): Promise<Page>
  close(): void
}
