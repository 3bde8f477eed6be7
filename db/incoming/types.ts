/** The settings of an incoming webhook, as they are stored and as /app shows them. */

export const TARGET_ENTITIES = ['Contact', 'Company'] as const
export type TargetEntity = (typeof TARGET_ENTITIES)[number]

/** The plural name under which the records of each target are kept. */
export const ENTITY_OF = { Contact: 'contacts', Company: 'companies' } as const satisfies Record<
  TargetEntity,
  string
>

export type WebhookStatus = 'Active' | 'Inactive'

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
  /** The field that two records of one and the same thing have in common. */
  by: 'email' | 'external_id'
}

/** How the payload becomes fields: by the names of its values. */
export interface FieldMapping {
  mode: 'automatic'
}

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
