import type { Payload } from '../../parse-body.ts'
import type { TargetKind, Verification } from '../../types.ts'

/** What senders are recognised by. Header names are in lower case. */
export interface SenderRequest {
  headers: Record<string, string | undefined>
  payload: Payload
}

/** Field, `full_name`, `company_name` or `note_content` → its paths in the payload, best first. */
export type KnownPaths = Record<string, string[]>

/** A common sender. Of its payloads only the known paths are mapped, and what is named by `guessIn`. */
export interface Sender {
  name: string
  /** The address of its documentation of webhooks. */
  documentation: string
  /** How its requests are verified. */
  verification: Verification
  /** Whose data a contact is made of: "the attendee; never the organizer". */
  person?: string
  /** Whether a request may have several records. */
  sendsBatches?: boolean
  /** Whether a request is one of this sender. */
  matches(request: SenderRequest): boolean
  /** The request that the sender makes when the webhook is set up. */
  isPing?(request: SenderRequest): boolean
  /** The header with the id of the delivery, in lower case, which a retry repeats. */
  deliveryHeader?: string
  /** The id of the delivery, or of the item of a batch, which a retry repeats. */
  deliveryId?(request: SenderRequest): unknown
  /** The paths whose values a repetition of a body with an id changes. */
  attemptMembers?: string[]
  /** The default of `dedupe_window`, in seconds, for a sender that repeats requests without an id. */
  dedupeWindow?: number
  /** The path of the list in which a request has several records. */
  recordsAt?: string[]
  /** A request that names a record of the sender, without its data. */
  isNotice?(request: SenderRequest): boolean
  /** Whether the person of the payload must not be contacted any more. */
  optsOut?(request: SenderRequest): boolean
  fields?: Partial<Record<TargetKind, KnownPaths>>
  /** Paths of a contact that depend on the payload, such as that of the primary of several addresses. */
  primaryPaths?(request: SenderRequest): KnownPaths
  /**
   * The paths with names that the account's owner chose: questions of a form, custom attributes. These are guessed;
   * `anywhere`: the whole payload, by the names of its values.
   */
  guessIn?: string[] | 'anywhere'
  /** The default of `secret_fields`: values that give access to the account of the sender. */
  secretFields?: string[]
  /** What the sender takes for success, if not any answer of 200. */
  acknowledgement?: { type: string; body: string }
}

/** The address below each of some paths, by the sender's names of its parts. */
export function addressAt(bases: string[], parts: Record<string, string>): KnownPaths {
  return Object.fromEntries(
    Object.entries(parts).map(([part, name]) => [
      `address.${part}`,
      bases.map((base) => (base ? `${base}.${name}` : name)),
    ]),
  )
}
