import type { Database } from '../../db/connect.ts'
import { createImportRows } from './import-rows.ts'

/** The activities of imports and exports. */
export const createFiles = (deps: { db: Database }) => ({
  importRows: createImportRows(deps),
})
