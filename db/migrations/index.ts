import type { Knex } from 'knex'
import * as access from './0001_access.ts'
import * as events from './0002_events.ts'
import * as records from './0003_records.ts'
import * as workflows from './0004_workflows.ts'
import * as runs from './0005_runs.ts'
import * as incoming from './0006_incoming.ts'
import * as outgoing from './0007_outgoing.ts'
import * as files from './0008_files.ts'

/**
 * In order. A migration that has landed in a release is never edited: the next one changes what it did. None can be
 * undone: a backup is the way back.
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
]
