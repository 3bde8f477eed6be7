import type { Knex } from 'knex'
import * as access from './0001_access.ts'
import * as events from './0002_events.ts'
import * as records from './0003_records.ts'
import * as workflows from './0004_workflows_and_triggers.ts'
import * as runs from './0005_runs_and_claims.ts'
import * as incoming from './0006_incoming.ts'
import * as outgoing from './0007_outgoing.ts'
import * as files from './0008_files.ts'
import * as sweep from './0009_sweep.ts'
import * as keyValues from './0010_key_values.ts'
import * as knowledge from './0011_knowledge.ts'
import * as storedFiles from './0012_stored_files.ts'
import * as reports from './0013_reports.ts'
import * as nodeAttempts from './0014_node_attempts.ts'
import * as bulkCounts from './0015_bulk_counts.ts'
import * as endpointBackoff from './0016_endpoint_backoff.ts'
import * as polledSources from './0017_polled_sources.ts'
import * as duePolls from './0018_due_polls.ts'
import * as embeddings from './0019_embeddings.ts'
import * as sensitiveValues from './0020_sensitive_values.ts'
import * as pipelines from './0021_pipelines.ts'
import * as erasures from './0022_erasures.ts'
import * as sealedValues from './0023_sealed_values.ts'
import * as pollFailures from './0024_poll_failures.ts'
import * as recordReads from './0025_record_reads.ts'
import * as otherAddresses from './0026_other_addresses.ts'
import * as importValues from './0027_import_values.ts'
import * as taskReminders from './0028_task_reminders.ts'
import * as products from './0029_products.ts'
import * as sourceFailing from './0030_source_failing.ts'
import * as taskReminderMails from './0031_task_reminder_mails.ts'
import * as consents from './0032_consents.ts'
import * as unsummedAmounts from './0033_unsummed_amounts.ts'
import * as exchangeRates from './0034_exchange_rates.ts'
import * as incomingSenders from './0035_incoming_senders.ts'
import * as lists from './0036_lists.ts'
import * as oauth from './0037_oauth.ts'

/** The last migration of the last release. Migrations up to it are never edited. */
export const BASELINE = '0034_exchange_rates'

/**
 * In order. A released migration is never edited; a new migration changes the schema again. There is no down migration:
 * restore a backup instead.
 *
 * A migration after the baseline runs while the previous version serves, and that version can still start afterwards
 * (`requireKnownSchema`). So it only adds: tables, columns that are nullable or have a constant default, constraints
 * that are `not valid` at first, indexes that are built concurrently (with `export const config = { transaction: false
 * }`). Rows are changed in batches by the worker, not here. Unused columns and tables are removed one release later.
 * The removing migration names the migration since which they are unused: in a comment of the statement, `unused since
 * 0011_…`, and in its own name, `0013_after_0011_…`, so that a version without the latter is refused.
 * `test/db/migrations.test.ts` checks all this.
 *
 * Growing tables lose old rows by batched deletes, one organization at a time, over a range of the primary key: ids are
 * UUIDv7, so a month is a range (`events`, `runs`, `deliveries`, `incoming_logs`). A table whose key is not in the
 * order of time has an index on the time. The tables are not partitioned by id: each statement would read every
 * partition, and retention differs by organization. Measured with a million events, 250,000 of them deleted in batches
 * of 1,000 in 15 s: four clients that insert and update meanwhile go from 10 to 17 ms at the median, from 54 to 70 ms
 * at p99 (two busy cores); in one run with partitions they took 22 ms all the time.
 */
export const migrations: [name: string, migration: { up(knex: Knex): Promise<void> }][] = [
  ['0001_access', access],
  ['0002_events', events],
  ['0003_records', records],
  ['0004_workflows_and_triggers', workflows],
  ['0005_runs_and_claims', runs],
  ['0006_incoming', incoming],
  ['0007_outgoing', outgoing],
  ['0008_files', files],
  ['0009_sweep', sweep],
  ['0010_key_values', keyValues],
  ['0011_knowledge', knowledge],
  ['0012_stored_files', storedFiles],
  ['0013_reports', reports],
  ['0014_node_attempts', nodeAttempts],
  ['0015_bulk_counts', bulkCounts],
  ['0016_endpoint_backoff', endpointBackoff],
  ['0017_polled_sources', polledSources],
  ['0018_due_polls', duePolls],
  ['0019_embeddings', embeddings],
  ['0020_sensitive_values', sensitiveValues],
  ['0021_pipelines', pipelines],
  ['0022_erasures', erasures],
  ['0023_sealed_values', sealedValues],
  ['0024_poll_failures', pollFailures],
  ['0025_record_reads', recordReads],
  ['0026_other_addresses', otherAddresses],
  ['0027_import_values', importValues],
  ['0028_task_reminders', taskReminders],
  ['0029_products', products],
  ['0030_source_failing', sourceFailing],
  ['0031_task_reminder_mails', taskReminderMails],
  ['0032_consents', consents],
  ['0033_unsummed_amounts', unsummedAmounts],
  ['0034_exchange_rates', exchangeRates],
  ['0035_incoming_senders', incomingSenders],
  ['0036_lists', lists],
  ['0037_oauth', oauth],
]
