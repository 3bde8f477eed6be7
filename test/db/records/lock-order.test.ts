import assert from 'node:assert/strict'
import { AppError } from '../../../db/model/errors.ts'
import { createSchema } from '../../../db/model/records/schemas.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { batch, type Operation } from '../../../db/records/batch.ts'
import { createRecord } from '../../../db/records/create.ts'
import { deleteRecord } from '../../../db/records/delete.ts'
import { restoreRecord } from '../../../db/records/restore.ts'
import { updateRecord } from '../../../db/records/update.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

/** Writes that lock the same records at the same time wait for each other, and none is repeated for a deadlock. */
describe('the order of locks', () => {
  let db: TestDatabase
  let organization: string
  let attempts: number
  let calls: number
  before(async () => {
    db = await createTestDatabase()
    organization = await createOrganization(db)
  })
  beforeEach(() => {
    attempts = 0
    calls = 0
  })
  after(() => db.drop())

  /** One call; a refusal such as 404 is a result as any other. */
  async function call(work: (tx: Tenant) => Promise<unknown>): Promise<void> {
    calls++
    await db
      .tenant(organization, testActor, (tx) => {
        attempts++
        return work(tx)
      })
      .catch((error) => {
        if (!(error instanceof AppError)) throw error
      })
  }
  const make = async (kind: 'companies' | 'contacts' | 'deals', values: object) =>
    (
      await db.tenant(organization, testActor, (tx) =>
        createRecord(tx, kind, createSchema(kind).parse(values)),
      )
    ).id as string
  const shuffled = <T>(items: T[]): T[] =>
    items
      .map((item) => [Math.random(), item] as const)
      .sort(([a], [b]) => a - b)
      .map(([, item]) => item)

  it('is the same for deletes of a batch and for restores of their records', async () => {
    const ids: string[] = []
    for (let n = 0; n < 6; n++) ids.push(await make('companies', { name: `Company ${n}` }))
    for (const company_id of [...ids, ...ids]) await make('contacts', { last_name: 'Ada', company_id })
    for (const [n, id] of ids.entries())
      if (n > 0)
        await db.tenant(organization, testActor, (tx) =>
          updateRecord(tx, 'companies', id, { parent_company_id: ids[n - 1] } as never),
        )
    const removal = (of: string[]): Operation[] => of.map((id) => ({ op: 'delete', id }))
    for (let round = 0; round < 6; round++)
      await Promise.all(
        shuffled([
          ...Array.from(
            { length: 3 },
            () => () => call((tx) => batch(tx, 'companies', removal(shuffled(ids)), false)),
          ),
          ...ids.map((id) => () => call((tx) => restoreRecord(tx, 'companies', id))),
        ]).map((start) => start()),
      )
    assert.equal(attempts, calls)
  })

  it('is the same for restores and for updates of the records that referred to theirs', async () => {
    const company = await make('companies', { name: 'Kernel' })
    const contacts: string[] = []
    for (let n = 0; n < 4; n++)
      contacts.push(await make('contacts', { last_name: `Ada ${n}`, company_id: company }))
    for (let round = 0; round < 8; round++) {
      await call((tx) => deleteRecord(tx, 'companies', company))
      await Promise.all(
        shuffled([
          () => call((tx) => restoreRecord(tx, 'companies', company)),
          ...contacts.map(
            (id) => () =>
              call((tx) =>
                updateRecord(tx, 'contacts', id, { job_title: `${round}`, company_id: company } as never),
              ),
          ),
        ]).map((start) => start()),
      )
    }
    assert.equal(attempts, calls)
  })
})
