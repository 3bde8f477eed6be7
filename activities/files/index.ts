import type { FilesDeps } from './deps.ts'
import { createExportRows } from './export-rows.ts'
import { createImportRows } from './import-rows.ts'

/** The activities of imports and exports. */
export const createFiles = (deps: FilesDeps) => ({
  importRows: createImportRows(deps),
  exportRows: createExportRows(deps),
})
