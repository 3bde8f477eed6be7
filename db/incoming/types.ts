import { capitalized, type EntityName, RECORD_KINDS } from '../../workflows/record-kinds.ts'

/** The settings of an incoming webhook, as they are stored and as /app shows them. */

/** The kinds that an incoming webhook can write. */
export const TARGETS = ['contacts', 'companies', 'deals', 'tasks'] as const satisfies EntityName[]
type Target = (typeof TARGETS)[number]

/** What the settings call them: `Contact`. */
export type TargetEntity = Capitalize<(typeof RECORD_KINDS)[Target]>

/** The plural of each target. */
export const ENTITY_OF = Object.fromEntries(
  TARGETS.map((entity) => [capitalized(RECORD_KINDS[entity]), entity]),
) as Record<TargetEntity, Target>

export const TARGET_ENTITIES = Object.keys(ENTITY_OF) as TargetEntity[]

/** Of incoming and outgoing webhooks. */
export const WEBHOOK_STATUSES = ['Active', 'Inactive'] as const
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number]

/** What proves that a request comes from the sender: the secret itself, or a signature made with it. */
export type Verification =
  | { type: 'secret' | 'standard_webhooks' | 'github' | 'stripe' | 'shopify' }
  | {
      type: 'hmac'
      header: string
      algorithm: 'sha1' | 'sha256' | 'sha512'
      encoding: 'hex' | 'base64'
      /** What the header's value has in front of the signature. */
      prefix: string
    }

export type DedupeAction = 'Skip' | 'Update' | 'Create Anyway'

export interface Deduplication {
  action: DedupeAction
  /** The field that two records of one and the same thing have in common; targets without email go by external_id. */
  by: 'email' | 'external_id'
}

/** How the payload becomes fields: by the names of its values, or by rules. */
export type FieldMapping = { mode: 'automatic' } | { mode: 'manual'; rules: MappingRule[] }

/** One value of the payload on its way to one field. */
export interface MappingRule {
  /** A path into the payload: `contact.emails[0]`. */
  from: string
  /** A field, `address.city`, `company_name`, `note_content` or `custom_fields.tier`. */
  to: string
  /** One after the other. */
  transforms: Transform[]
  /** In place of a value that is missing or, after the transforms, empty. */
  default?: string | undefined
  /** A regular expression (RE2): a value that it matches is not mapped. */
  skip_if?: string | undefined
  /** The rule holds only where this does. */
  when?: Condition | undefined
}

export type Transform =
  | { type: 'uppercase' | 'lowercase' | 'trim' | 'remove_special' }
  /** To E.164, where the number parses and has no extension; `country` is for numbers without a prefix. */
  | { type: 'format_phone'; country?: string | undefined }
  /** To RFC 3339. `unix` is seconds. */
  | { type: 'parse_date'; format: 'ymd' | 'dmy' | 'mdy' | 'unix' }
  /** Times the rate, exactly, rounded to cents. */
  | { type: 'convert_currency'; rate: string }
  | { type: 'split_name'; part: 'first_name' | 'last_name' }
  /** With other values of the payload, those that are there. */
  | { type: 'combine'; with: string[]; separator: string }
  /** Every match of a regular expression (RE2). */
  | { type: 'replace'; pattern: string; by: string }

export type Condition =
  | { path: string; is: 'present' | 'absent' }
  | { path: string; is: 'equal' | 'not_equal' | 'matching'; to: string }

/** After so many requests over the limit within an hour, an address is blocked for so many minutes. */
export interface BlockRule {
  after: number
  minutes: number
}

export interface IncomingWebhook {
  id: string
  name: string
  description: string
  status: WebhookStatus
  verification: Verification
  ip_whitelist: string[]
  rate_limit: number
  burst: number
  block: BlockRule | null
  target_entity: TargetEntity
  field_mapping: FieldMapping
  deduplication: Deduplication
  workflow_id: string | null
  /** The workflow's inputs, each with its path into `payload`, `record` or `webhook`. */
  workflow_inputs: Record<string, string>
  created_at: Date
  updated_at: Date
}
