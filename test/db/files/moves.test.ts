import { randomUUID } from 'node:crypto'
import type { ExportRow } from '../../../db/exports/exports.ts'
import { expireExport, recordExportProgress } from '../../../db/files/moves/exports.ts'
import {
  beginImport,
  markImportReady,
  queueImport,
  recordImportProgress,
  stopImport,
} from '../../../db/files/moves/imports.ts'
import {
  endUnrecordedFile,
  type FileTable,
  failFileStart,
  markFilesStarted,
} from '../../../db/files/moves/queue.ts'
import type { ImportRow } from '../../../db/imports/imports.ts'
import { EXPORT_STATUSES, IMPORT_STATUSES } from '../../../db/model/files/statuses.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { type Driver, describeMoves, type Fixture, readTable } from '../../support/moves.ts'

interface FileFixture extends Fixture {
  organization_id: string
  id: string
  starts: number
  row(): Promise<ImportRow & ExportRow>
  set(values: object): Promise<unknown>
}

const END = {
  running: undefined,
  completed: { status: 'completed' },
  failed: { status: 'failed', error: { message: 'Test' } },
} as const

describe('the moves of imports and exports', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  const fixtureOf =
    (table: FileTable) =>
    async (status: string): Promise<FileFixture> => {
      const organization_id = await createOrganization(db)
      const key = { organization_id, id: randomUUID() }
      const row = () => db.system(table).where(key)
      const values =
        table === 'imports' ? { mode: 'create', dry_run: false } : { query: {}, list_query: {}, bom: false }
      await db
        .system(table)
        .insert({ ...key, ...values, entity: 'contacts', status, created_by: {}, starts: 1 })
      return {
        ...key,
        starts: 1,
        row: () => row().first(),
        set: (values) => row().update(values),
        status: async () => (await row().first('status')).status,
        snapshot: () => row().first(),
        remove: () => db.system('organizations').where({ id: organization_id }).delete(),
      }
    }

  /** Runs a move that throws if it is not possible. */
  const thrown = async (
    file: FileFixture,
    work: (tx: Tenant, row: ImportRow & ExportRow) => Promise<unknown>,
  ) => {
    const row = await file.row()
    return db.tenant(file.organization_id, testActor, async (tx) => Boolean(await work(tx, row)))
  }
  const another = (file: FileFixture) => ({ ...file, starts: 7 })

  function shared(table: FileTable): Record<string, Driver<FileFixture>> {
    const start = async (file: FileFixture) => (await markFilesStarted(db.system, table, [file])) === 1
    const fail = (file: FileFixture) =>
      db.tenant(file.organization_id, testActor, (tx) => failFileStart(tx, table, file, 'no such queue'))
    const end = (file: FileFixture) => endUnrecordedFile(db.system, table, file, 'Terminated.')
    const ofThisStart = (file: FileFixture) => file.set({ starts: 1 })
    const driver = (act: (file: FileFixture) => Promise<boolean>) => ({
      arrange: ofThisStart,
      act,
      unmet: { 'another start': (file: FileFixture) => act(another(file)) },
    })
    return {
      markFilesStarted: driver(start),
      failFileStart: driver(fail),
      endUnrecordedFile: driver(end),
    }
  }

  describe('imports', () => {
    describeMoves<FileFixture>({
      table: readTable('db/model/files/statuses.ts', 'imports'),
      statuses: IMPORT_STATUSES,
      fixture: fixtureOf('imports'),
      drivers: {
        ...shared('imports'),
        markImportReady: { act: (file) => thrown(file, (tx, { id }) => markImportReady(tx, id, {})) },
        queueImport: { act: (file) => thrown(file, (tx, row) => queueImport(tx, row, {})) },
        beginImport: { act: (file) => thrown(file, beginImport) },
        recordImportProgress: {
          act: (file, to) =>
            thrown(file, (tx, { id }) =>
              recordImportProgress(tx, id, { rows_read: 7 }, END[to as keyof typeof END]),
            ),
        },
        stopImport: { act: (file) => thrown(file, (tx, { id }) => stopImport(tx, id)) },
      },
    })
  })

  describe('exports', () => {
    describeMoves<FileFixture>({
      table: readTable('db/model/files/statuses.ts', 'exports'),
      statuses: EXPORT_STATUSES,
      fixture: fixtureOf('exports'),
      drivers: {
        ...shared('exports'),
        recordExportProgress: {
          act: (file, to) =>
            thrown(file, (tx, row) =>
              recordExportProgress(tx, row, { rows: 7 }, END[to as keyof typeof END]),
            ),
        },
        expireExport: { act: (file) => expireExport(db.system, file) },
      },
    })
  })
})
