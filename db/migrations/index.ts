import type { Knex } from 'knex'
import * as access from './0001_access.ts'
import * as events from './0002_events.ts'
import * as records from './0003_records.ts'
import * as workflows from './0004_workflows.ts'
import * as runs from './0005_runs.ts'
import * as incoming from './0006_incoming.ts'
import * as outgoing from './0007_outgoing.ts'
import * as files from './0008_files.ts'
import * as sweep from './0009_sweep.ts'

/**
 * In order. A migration that has landed in a release is never edited: the next one changes what it did. None can be
 * undone: a backup is the way back.
 *
 * Tables that grow for ever lose old rows by batched deletes, one organization at a time, over a range of the primary key:
 * ids are UUIDv7, so that a month is a range (`events`, `runs`, `deliveries`, `incoming_logs`); where the key is not in the
 * order of time there is an index (`record_history_age`, `idempotency_keys_age`). They are not partitioned by id: each
 * statement would look into every partition, and retention differs by organization. Measured with a million events,
 * 250,000 of them deleted in batches of 1,000 in 15 s: four clients that insert and update beside it go from 10 to 17 ms
 * at the median, 54 to 70 ms at p99 (two busy cores). With partitions they take 22 ms all the time.
 */
export const migrations: [name: string, migration: { up(knex: Knex): Promise<void> }][] = [
  ['0001_access', access],
  ['0002_events', events],
  ['0003_records', records],
  ['0004_workflows', workflows],
  ['0005_runs', runs],
  ['0006_incoming', incoming],
  ['0007_outgoing', outgoing],
  ['0008_files', files],
  ['0009_sweep', sweep],
]
