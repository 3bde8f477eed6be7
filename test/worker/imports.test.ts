import assert from 'node:assert/strict'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { historyOf, startWorker, type TestWorker } from '../support/worker.ts'

describe('imports', function () {
  this.timeout(60_000)
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

  const contacts = async (query: string) =>
    (await api.request('GET', `/v1/objects/contacts?sort=email&order=asc&${query}`)).body.data

  it('create a record of each row, tell those that are wrong, and can be put right', async () => {
    const file = [
      'First Name;E-Mail;Phone Number;Do not contact;Shoe size',
      'Ada;ada@rows.example;+41 44 668 18 00;yes;37',
      'Bob;no address;;no;',
      ';;;;',
      '"Cleo\nMaria";cleo@rows.example;;FALSE;=1+1',
      'Dan;dan@rows.example;;perhaps;40',
    ].join('\r\n')
    const done = await imports.run({ entity: 'contacts' }, file)
    assert.deepEqual([done.status, done.error], ['completed', null])
    assert.deepEqual(done.progress, { rows: 5, created: 2, updated: 0, skipped: 1, failed: 2, line: 7 })
    const [ada, cleo] = await contacts('email[contains]=rows.example')
    assert.deepEqual(
      [ada.first_name, ada.phone, ada.do_not_contact, ada.custom_fields],
      ['Ada', '+41446681800', true, { shoe_size: '37' }],
    )
    assert.equal(ada.created_by.type, 'key')
    assert.equal(cleo.first_name, 'Cleo\nMaria')

    const errors = await imports.errors(done.id)
    assert.equal(
      errors,
      'First Name;E-Mail;Phone Number;Do not contact;Shoe size;error\r\n' +
        'Bob;no address;;no;;line 3: E-Mail: Invalid email address\r\n' +
        'Dan;dan@rows.example;;perhaps;40;line 7: Do not contact: must be true or false, or yes or no\r\n',
    )
    const again = await imports.run(
      { entity: 'contacts' },
      errors.replace('no address', 'bob@rows.example').replace('perhaps', 'n'),
    )
    assert.deepEqual([again.progress.created, again.progress.failed], [2, 0])
  })

  it('keep rows out of the history of the workflow', async () => {
    const done = await imports.run({ entity: 'contacts' }, 'email\nhistory@secret.example\n')
    const events = await historyOf(worker.client, `import:${done.id}`)
    assert.ok(events.length > 5)
    assert.ok(!Buffer.from(JSON.stringify(events)).toString().includes('secret.example'))
    const encoded = Buffer.from('secret.example').toString('base64').slice(2, 14)
    assert.ok(!JSON.stringify(events).includes(encoded))
  })
})
