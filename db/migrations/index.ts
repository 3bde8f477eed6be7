import type { Knex } from 'knex'
import * as foundation from './0001_foundation.ts'
import * as records from './0002_records.ts'
import * as workflows from './0003_workflows.ts'
import * as runs from './0004_runs.ts'
import * as incoming from './0005_incoming.ts'
import * as outgoing from './0006_outgoing.ts'
import * as sixKinds from './0007_six_kinds.ts'
import * as customFieldDefinitions from './0008_custom_field_definitions.ts'
import * as bulkAndMerge from './0009_bulk_and_merge.ts'
import * as imports from './0010_imports.ts'
import * as listSpeed from './0011_list_speed.ts'
import * as idempotentHeaders from './0012_idempotent_headers.ts'
import * as exportStarts from './0013_export_starts.ts'
import * as importKeys from './0014_import_keys.ts'
import * as listIndexes from './0015_list_indexes.ts'
import * as leases from './0016_leases.ts'
import * as externalIds from './0017_external_ids.ts'
import * as deliverySlots from './0018_delivery_slots.ts'
import * as nodeDurations from './0019_node_durations.ts'

/** In order. A migration that has landed is never edited; the next one changes what it did. */
export const migrations: [name: string, migration: Knex.Migration][] = [
  ['0001_foundation', foundation],
  ['0002_records', records],
  ['0003_workflows', workflows],
  ['0004_runs', runs],
  ['0005_incoming', incoming],
  ['0006_outgoing', outgoing],
  ['0007_six_kinds', sixKinds],
  ['0008_custom_field_definitions', customFieldDefinitions],
  ['0009_bulk_and_merge', bulkAndMerge],
  ['0010_imports', imports],
  ['0011_list_speed', listSpeed],
  ['0012_idempotent_headers', idempotentHeaders],
  ['0013_export_starts', exportStarts],
  ['0014_import_keys', importKeys],
  ['0015_list_indexes', listIndexes],
  ['0016_leases', leases],
  ['0017_external_ids', externalIds],
  ['0018_delivery_slots', deliverySlots],
  ['0019_node_durations', nodeDurations],
]
