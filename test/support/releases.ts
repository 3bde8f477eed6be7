import { readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { keyOf } from '../../db/model/access/key-format.ts'

/**
 * The databases of released versions, which `record-release.ts` records and `test/upgrade.test.ts` migrates: dumps of
 * PostgreSQL as SQL, and what a client of that version knew.
 */
const folder = new URL('../fixtures/releases/', import.meta.url)

export interface Release {
  version: string
  /** The dump, as statements. */
  sql: string
  known: Known
}

/** What a client of the version knew: secrets that were shown once, and the answers that it had received. */
export interface Known {
  incoming: { path: string; secret: string }
  outgoing: { secret: string }
  /** The SHA-256 of the SQL of each migration, by its name. */
  migrations: Record<string, string>
  /** The path below /v1 of each record, with the answer. */
  records: { path: string; body: Record<string, unknown> }[]
}

export const releases = (): Release[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.replace(/\.json$/, ''))
    .map((version) => ({
      version,
      sql: gunzipSync(readFileSync(fileOf(version, 'sql.gz'))).toString(),
      known: JSON.parse(readFileSync(fileOf(version, 'json'), 'utf8')),
    }))

export const fileOf = (version: string, extension: 'sql.gz' | 'json') =>
  new URL(`${version}.${extension}`, folder)

/** The owner and the key of every recorded deployment. They are in this repository, so they are no secrets. */
export const OWNER = { email: 'owner@example.com', password: 'the password of a recorded release' }
export const KEY = keyOf('recordedRelease'.padEnd(40, '0'))

/** Base64, 32 bytes: what is sealed in a dump opens with this key alone. */
export const RELEASE_SECRETS_KEY = Buffer.alloc(32, 'release').toString('base64')

/** Where the nodes and webhooks of a recorded deployment send to. Closed while it was recorded. */
export const OUTSIDE_PORT = 18_077
export const OUTSIDE = `http://127.0.0.1:${OUTSIDE_PORT}`

/** Settings of the processes of a recorded deployment, when it is recorded and later. */
export const RELEASE_ENV = {
  SECRETS_KEY: RELEASE_SECRETS_KEY,
  ALLOW_INSECURE_WEBHOOKS: 'true',
  EGRESS_ALLOW: '127.0.0.0/8',
  EGRESS_ONLY: '127.0.0.0/8',
}

/** Workflows with a run of each that waited while the dump was made; the key is their name. */
export const WAITING = {
  'Waits for a signal': 'wait: {type: wait_for_signal, config: {name: go}}',
  'Waits for a person': 'wait: {type: approval, config: {title: May I?}}',
  'Waits for a time': 'wait: {type: delay, config: {for: 1m}}',
  'Waits for its next attempt': `wait:
    type: api_request
    retry: {max_attempts: 20, initial_interval: 1m, max_interval: 1m}
    config: {method: POST, url: "${OUTSIDE}/calls", body: {run: "{{ run.id }}"}}`,
  'Waits for an item': `each:
    type: for_each
    config: {items: [1, 2]}
    next: {item: wait, done: end}
  wait: {type: wait_for_signal, config: {name: item}, next: {received: end}}`,
} as const

/** A workflow that each new contact starts. */
export const ON_CONTACT = `name: Greets a contact
trigger: {type: event, events: [contact.created]}
nodes:
  greet: {type: set_fields, config: {fields: {hello: "{{ trigger.record.first_name }}"}}}
`
