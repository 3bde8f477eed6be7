import type { TARGET_KINDS } from '../../../workflows/shared/record-kinds.ts'
import type { Source } from './source.ts'

/** The settings of an incoming webhook, as stored and as /app shows them. */

export type TargetKind = (typeof TARGET_KINDS)[number]

/** What a webhook's requests write; `none`: no record, they only start workflows. */
export type WebhookKind = TargetKind | 'none'

export const WEBHOOK_STATUSES = ['Active', 'Inactive'] as const
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number]

/** `token` is the secret in the URL. */
export const SENDER_VERIFICATIONS = [
  'secret',
  'token',
  'standard_webhooks',
  'github',
  'meta',
  'stripe',
  'shopify',
  'slack',
  'hubspot',
  'calendly',
  'chatwoot',
  'close',
  'customerio',
  'dialpad',
  'dropbox_sign',
  'intercom',
  'linear',
  'linkedin',
  'mailgun',
  'paddle',
  'pandadoc',
  'sendgrid',
  'square',
  'svix',
  'twilio',
  'typeform',
  'webflow',
  'zendesk',
  'zoom',
] as const
export type SenderVerification = (typeof SENDER_VERIFICATIONS)[number]

/** How a request is authenticated: by the secret itself, or by a signature made with it. */
export type Verification =
  | { type: SenderVerification }
  /** HTTP basic: the secret is the password. */
  | { type: 'basic'; username: string }
  | {
      type: 'hmac'
      header: string
      algorithm: 'sha1' | 'sha256' | 'sha512'
      encoding: 'hex' | 'base64'
      /** The text before the signature in the header's value. */
      prefix: string
    }

export type DedupeAction = 'Skip' | 'Update' | 'Create Anyway'

export interface Deduplication {
  action: DedupeAction
  /**
   * What identifies duplicates: `email`, `external_id`, `custom_fields.<name>` of a unique definition, or
   * `payload.<path>`, whose value becomes the external_id. Targets without email use external_id.
   */
  by: string
}

const KEY_IN_PAYLOAD = 'payload.'

/** The path in `payload.<path>`. With Create Anyway it would let no second record be created. */
export const pathOfKey = ({ action, by }: Deduplication): string | undefined =>
  by.startsWith(KEY_IN_PAYLOAD) && action !== 'Create Anyway' ? by.slice(KEY_IN_PAYLOAD.length) : undefined

/** Maps the payload to fields: by the names of its values, or by rules. */
export type FieldMapping = { mode: 'automatic' } | { mode: 'manual'; rules: MappingRule[] }

/** Maps one value of the payload to one field. */
export interface MappingRule {
  /** A path into the payload: `contact.emails[0]`. */
  from: string
  /** A field, `address.city`, `company_name`, `note_content` or `custom_fields.tier`. */
  to: string
  /** Applied in order. */
  transforms: Transform[]
  /** Replaces a value that is missing or, after the transforms, empty. */
  default?: string | undefined
  /** A regular expression (RE2): a value that it matches is not mapped. */
  skip_if?: string | undefined
  /** The rule applies only if this condition holds. */
  when?: Condition | undefined
}

/** What a request does to its record; `triggered`: there is none, and workflows were started for it. */
export const WRITES = ['created', 'updated', 'skipped', 'triggered'] as const
export type Write = (typeof WRITES)[number]

/** Kinds of records that requests may write beside those of their webhook. */
export const FURTHER_KINDS = ['companies', 'notes'] as const
export type FurtherKind = (typeof FURTHER_KINDS)[number]

/** A further workflow of a webhook. */
export interface Listener {
  workflow_id: string
  workflow_inputs: Record<string, string>
  /** Which requests start it, by a value of the payload; without it all. */
  when?: Condition | undefined
}

export const DATE_FORMATS = ['ymd', 'dmy', 'mdy', 'unix'] as const
export type DateFormat = (typeof DATE_FORMATS)[number]

export type Transform =
  | { type: 'uppercase' | 'lowercase' | 'trim' | 'remove_special' }
  /** To E.164, if the number parses and has no extension; `country` applies to numbers without a prefix. */
  | { type: 'format_phone'; country?: string | undefined }
  /** To RFC 3339. `unix` is seconds. */
  | { type: 'parse_date'; format: DateFormat }
  /** Multiplies by the rate in exact arithmetic, rounded to cents. */
  | { type: 'convert_currency'; rate: string }
  | { type: 'split_name'; part: 'first_name' | 'last_name' }
  /** Appends other values of the payload, except missing ones. */
  | { type: 'combine'; with: string[]; separator: string }
  /** The filters of workflows: `remove: "+" | truncate: 20`. Their arguments can read `value` and `payload`. */
  | { type: 'liquid'; filters: string }
  /** Every match of a regular expression (RE2). */
  | { type: 'replace'; pattern: string; by: string }

export type Condition =
  | { path: string; is: 'present' | 'absent' }
  | { path: string; is: 'equal' | 'not_equal' | 'matching'; to: string }

/** Blocks an address for `minutes` after `after` requests over the limit within an hour. */
export interface BlockRule {
  after: number
  minutes: number
}

export interface IncomingWebhook {
  id: string
  name: string
  description: string
  status: WebhookStatus
  /** The id of the known sender that its owner has chosen. */
  sender: string | null
  verification: Verification
  ip_whitelist: string[]
  rate_limit: number
  burst: number
  block: BlockRule | null
  /** What its requests write; `target_entity` in the table and on the wire. */
  kind: WebhookKind
  /** What its requests may write besides. */
  also_writes: FurtherKind[]
  field_mapping: FieldMapping
  deduplication: Deduplication
  /** Seconds in which a request without a delivery id is taken for a repetition of one with the same body; 0: never. */
  dedupe_window: number
  /** Names of headers, in lower case, whose values are masked wherever a request is shown. */
  secret_headers: string[]
  /** The same of values of the payload, by their paths. */
  secret_fields: string[]
  workflow_id: string | null
  /** The workflow's inputs, each with its path into `payload`, `record` or `webhook`. */
  workflow_inputs: Record<string, string>
  /** Further workflows that a request starts. */
  listeners: Listener[]
  /** The headers and parameters of the query that workflows read in `trigger`, by name. */
  trigger_headers: string[]
  trigger_query: string[]
  /** Seconds in which a request waits for the answer of a workflow; 0: it is answered at once. */
  response_wait: number
  /** What is polled for its requests, in addition to those that are sent. */
  source: Source | null
  polled_at: Date | null
  next_poll_at: Date | null
  /** Why the last poll failed. */
  poll_problem: string | null
  poll_failures: number
  /** Until then the next request is captured as a sample. */
  capturing_until: Date | null
  /** The log entry of the captured sample. */
  sample_log_id: string | null
  created_at: Date
  updated_at: Date
}
