import type { Database } from '../../db/connect.ts'
import { createExportRows } from './export-rows.ts'
import { createImportRows } from './import-rows.ts'

/** The activities of imports and exports. */
export const createFiles = (deps: { db: Database }) => ({
  importRows: createImportRows(deps),
  exportRows: createExportRows(deps),
})
