/** The least columns of webhooks, besides their ids, for tests that insert rows. */
export const INCOMING_ROW = {
  secret_sealed: 'sealed',
  verification: {},
  rate_limit: 60,
  target_entity: 'contacts',
  field_mapping: {},
  deduplication: {},
}
export const OUTGOING_ROW = { secret_sealed: 'sealed', url: 'https://example.com/', events: ['*'] }
