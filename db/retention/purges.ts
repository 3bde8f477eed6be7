import { accessPurges } from '../access/purge.ts'
import { exportPurges } from '../exports/purge.ts'
import { importPurges } from '../imports/purge.ts'
import { incomingPurges } from '../incoming/purge.ts'
import { keyValuePurges } from '../key-values/purge.ts'
import { outgoingPurges } from '../outgoing/purge.ts'
import { bulkPurges } from '../records/bulk/purge.ts'
import { recordPurges } from '../records/purge.ts'
import { runPurges } from '../runs/purge.ts'
import { filePurges } from '../stored-files/purge.ts'
import type { Purge } from './purge.ts'

/**
 * All purges. `test/db/retention/catalogue.test.ts` requires that one of them empties every table that grows with use.
 */
export const PURGES: readonly Purge[] = [
  ...accessPurges,
  ...incomingPurges,
  // Deliveries before events, because an event stays until its deliveries are deleted.
  ...outgoingPurges,
  ...runPurges,
  ...filePurges,
  ...importPurges,
  ...exportPurges,
  ...recordPurges,
  ...bulkPurges,
  ...keyValuePurges,
]
