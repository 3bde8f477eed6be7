import assert from 'node:assert/strict'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

describe('companies that the rows of an import name', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let imports: ReturnType<typeof importsOf>

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db)
    imports = importsOf(api)
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  const create = async (kind: string, body: object) =>
    (await api.request('POST', `/v1/objects/${kind}`, { body })).body
  const companies = async (name: string) =>
    (await api.request('GET', `/v1/objects/companies?name=${name}`)).body.data
  const contact = async (email: string) =>
    (await api.request('GET', `/v1/objects/contacts?email=${email}`)).body.data[0]

  it('are not guessed where several have the name', async () => {
    const twins = [await create('companies', { name: 'Twins' }), await create('companies', { name: 'TWINS' })]
    const file = 'Email,Company\none@t.example,Twins\ntwo@t.example,Other\n'
    for (const dry_run of [true, false]) {
      const done = await imports.run({ entity: 'contacts', dry_run }, file)
      assert.deepEqual([done.progress.created, done.progress.failed], [1, 1], JSON.stringify(done.progress))
      const errors = await imports.errors(done.id)
      assert.match(errors, /Company: 2 companies are called Twins/)
      for (const { id } of twins) assert.ok(errors.includes(id), errors)
    }
    assert.equal(await contact('one@t.example'), undefined)
    assert.equal((await contact('two@t.example')).company_id, (await companies('Other'))[0].id)
    const byId = `Email,Company,company_id\none@t.example,,${twins[1].id}\n`
    const done = await imports.run({ entity: 'contacts' }, byId)
    assert.equal(done.progress.created, 1, await imports.errors(done.id))
    assert.equal((await contact('one@t.example')).company_id, twins[1].id)
  })

  it('are not created for rows that fail', async () => {
    await create('contacts', { email: 'taken@s.example', external_id: 'taken' })
    const events = async () =>
      Number((await db.system('events').where('name', 'company.created').count())[0]!.count)
    const before = await events()
    const file = [
      'Email,External ID,Company,owner_id',
      'a@s.example,a,Good,',
      'b@s.example,taken,Stub of a conflict,',
      `c@s.example,c,Stub of an owner,${crypto.randomUUID()}`,
      'd@s.example,d,Shared,',
      'e@s.example,taken,Shared,',
    ].join('\n')
    const done = await imports.run({ entity: 'contacts' }, file)
    assert.deepEqual([done.progress.created, done.progress.failed], [2, 3], await imports.errors(done.id))
    assert.equal((await companies('Stub of a conflict')).length, 0)
    assert.equal((await companies('Stub of an owner')).length, 0)
    assert.equal((await companies('Good')).length, 1)
    assert.equal((await contact('d@s.example')).company_id, (await companies('Shared'))[0].id)
    assert.equal(await events(), before + 2)

    const upsert = await imports.run(
      { entity: 'contacts', mode: 'upsert', by: 'email' },
      'Email,Company\n,Stub of no key\na@s.example,Good\n',
    )
    assert.deepEqual(
      [upsert.progress.skipped, upsert.progress.failed],
      [1, 1],
      JSON.stringify(upsert.progress),
    )
    assert.equal((await companies('Stub of no key')).length, 0)
  })
})
