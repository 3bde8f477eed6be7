import assert from 'node:assert/strict'
import pg from 'pg'
import { advanceImport, type Read } from '../../db/imports/advance.ts'
import { searchAttributes } from '../../worker/search-attributes.ts'
import { Sweep } from '../../worker/sweep.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { historyOf, startWorker, type TestWorker, testLog } from '../support/worker.ts'

describe('imports', () => {
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

  it('keep the currency of an amount, and read a column by all of its values', async () => {
    const file = [
      'name;amount;expected_close_date;custom_fields.score;custom_fields.weight',
      'Fmt A;£8,000.00;10/31/2024;1.200;1.200',
      "Fmt B;CHF 8'000;10/11/2024;8.000;8.000",
      'Fmt C;EUR 8.000;;7;3,5',
      'Fmt D;$1,250.00;;7;',
      'Fmt E;1,500;;;',
    ].join('\n')
    const { body } = await imports.prepare({ entity: 'deals' }, file)
    const formats = Object.fromEntries(
      body.file.columns.map(({ name, format }: { name: string; format: object }) => [name, format]),
    )
    const nothing = { decimal: null, date: null, open: [] }
    assert.deepEqual(formats.amount, { decimal: '.', date: null, open: [] })
    assert.deepEqual(formats.expected_close_date, { decimal: null, date: 'mdy', open: [] })
    assert.deepEqual(formats['custom_fields.score'], { ...nothing, open: ['decimal'] })
    assert.deepEqual(formats['custom_fields.weight'], { ...nothing, decimal: ',' })
    const wrong = await imports.start(body.id, { formats: { nope: { decimal: ',' } } })
    assert.deepEqual(
      [wrong.status, wrong.body.error.details?.length ?? 1],
      [422, 1],
      JSON.stringify(wrong.body),
    )

    for (const name of ['score', 'weight']) {
      const definition = { name, label: name, type: 'number' }
      const made = await api.request('POST', '/v1/custom-fields/deals', { body: definition })
      assert.equal(made.status, 201)
    }
    const started = await imports.start(body.id, { formats: { 'custom_fields.score': { decimal: ',' } } })
    assert.equal(started.status, 200, JSON.stringify(started.body))
    const done = await imports.ended(body.id)
    const { data } = (await api.request('GET', '/v1/objects/deals?name[contains]=Fmt&sort=name&order=asc'))
      .body
    assert.deepEqual(
      data.map((deal: Record<string, unknown>) => [deal.amount, deal.currency, deal.expected_close_date]),
      [
        ['8000.00', 'GBP', '2024-10-31'],
        ['8000.00', 'CHF', '2024-10-11'],
        ['1250.00', 'USD', null],
        ['1500.00', 'USD', null],
      ],
      JSON.stringify(done),
    )
    assert.deepEqual(data[0].custom_fields, { score: 1200, weight: 1200 })
    // The points of the others are decimal points, and no amount has three decimals.
    assert.match(await imports.errors(done.id), /line 4: amount: 8\.000 does not fit the other values/)
  })

  it('refuse an amount whose currency is another one than that of its column, or open', async () => {
    const file = 'name,amount,currency\nCur A,£5.00,GBP\nCur B,£5.00,USD\nCur C,5 kr,\n'
    const done = await imports.run({ entity: 'deals' }, file)
    assert.deepEqual([done.progress.created, done.progress.failed], [1, 2])
    const errors = await imports.errors(done.id)
    assert.match(errors, /amount: is in GBP, but currency says USD/)
    assert.match(errors, /kr may be SEK, NOK, DKK or another currency: start with ""?currencies/)
    const rest = await imports.run(
      { entity: 'deals', currencies: { krone: 'SEK' } },
      'name,amount\nCur C,5 kr\n',
    )
    assert.deepEqual([rest.progress.created, rest.progress.failed], [1, 0])
  })

  it('create a record per valid row and report invalid rows, which can be corrected', async () => {
    const file = [
      'First Name;E-Mail;Phone Number;Do not contact;=Shoe size',
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
      "First Name;E-Mail;Phone Number;Do not contact;'=Shoe size;error\r\n" +
        'Bob;no address;;no;;line 3: E-Mail: must be an email address, such as ada@example.com\r\n' +
        'Dan;dan@rows.example;;perhaps;40;line 7: Do not contact: must be true or false, or yes or no\r\n',
    )
    const again = await imports.run(
      { entity: 'contacts' },
      errors.replace('no address', 'bob@rows.example').replace('perhaps', 'n'),
    )
    assert.deepEqual([again.progress.created, again.progress.failed], [2, 0])
  })

  it('read deals of other systems: a closing time becomes its date, 50% becomes 50', async () => {
    const done = await imports.run(
      { entity: 'deals' },
      'Deal Name,Close Date,Probability\nTimed,2025-12-31 10:00,50%\nBad day,13/13/2025,5\nShare,,0.5\n',
    )
    assert.deepEqual([done.progress.created, done.progress.failed], [1, 2])
    const { body } = await api.request('GET', '/v1/objects/deals?name=timed')
    const [{ expected_close_date, probability }] = body.data
    assert.deepEqual([expected_close_date, probability], ['2025-12-31', 50])
    const [, day, share] = (await imports.errors(done.id)).split('\r\n')
    assert.equal(day, 'Bad day,13/13/2025,5,line 3: Close Date: must be a valid date such as 2026-01-31')
    assert.equal(
      share,
      'Share,,0.5,line 4: Probability: may be a fraction or a percentage: for one half write 50 or 50%',
    )
  })

  it('link deals with the companies that they name; missing companies are created', async () => {
    const { body: company } = await api.request('POST', '/v1/objects/companies', {
      body: { name: 'Old Engines' },
    })
    const done = await imports.run(
      { entity: 'deals' },
      'Deal Name,Associated Company\nc1,old engines\nc2,New Engines\nc3,\n',
    )
    assert.deepEqual([done.progress.created, done.progress.failed], [3, 0])
    const { body } = await api.request('GET', '/v1/objects/deals?name[starts_with]=c&sort=name&order=asc')
    const [first, second, third] = body.data.map((deal: { company_id: string | null }) => deal.company_id)
    assert.deepEqual([first, third], [company.id, null])
    assert.equal((await api.request('GET', `/v1/objects/companies/${second}`)).body.name, 'New Engines')
  })

  it('never read a thousands separator as a decimal point', async () => {
    await api.request('POST', '/v1/custom-fields/deals', { body: { name: 'weight', type: 'number' } })
    const file = 'name;amount;weight\ne1;1.250;\ne2;1.250,50;2,5\ne3;;8.541\ne4;1.250.000;\n'
    const done = await imports.run({ entity: 'deals' }, file)
    assert.equal(done.progress.failed, 0)
    const { body } = await api.request('GET', '/v1/objects/deals?name[in]=e1,e2,e3,e4&sort=name&order=asc')
    assert.deepEqual(
      body.data.map(({ amount, custom_fields }: Record<string, unknown>) => [amount, custom_fields]),
      [
        ['1250.00', {}],
        ['1250.50', { weight: 2.5 }],
        [null, { weight: 8541 }],
        ['1250000.00', {}],
      ],
    )
    const open = await imports.run({ entity: 'deals' }, 'name;amount;weight\ne5;1.250;\ne6;;8.541\n')
    assert.equal(
      await imports.errors(open.id),
      'name;amount;weight;error\r\n' +
        'e5;1.250;;line 2: amount: 1.250 is ambiguous: write 1250 or 1,25\r\n' +
        'e6;;8.541;line 3: weight: 8.541 is ambiguous: write 8541 or 8,5410\r\n',
    )
    await api.request('DELETE', '/v1/custom-fields/deals/weight?delete_values=true')
  })

  it('report all errors of a row together', async () => {
    const define = (name: string, more: object) =>
      api.request('POST', '/v1/custom-fields/deals', { body: { name, ...more } })
    await define('size', { type: 'number' })
    await define('site', { type: 'url' })
    const header = 'Deal Name,Close Date,Probability,Size,Site'
    const rows = [',2026-13-04,1.0,big,nowhere', 'One,2026-01-04,50%,3,nowhere']
    const done = await imports.run({ entity: 'deals' }, [header, ...rows].join('\n'))
    const [, all, one] = (await imports.errors(done.id)).split('\r\n')
    for (const column of ['Probability', 'Size', 'Close Date', 'Site', 'Deal Name'])
      assert.equal(all!.split(`${column}: `).length, 2, `${column} once in ${all}`)
    assert.match(one!, /line 3: Site: must be an http or https URL$/)

    const changes = await imports.run(
      { entity: 'deals', mode: 'upsert', by: 'external_id' },
      'external_id,Close Date,Probability\nd0,2026-13-04,1.0\n',
    )
    const [, change] = (await imports.errors(changes.id)).split('\r\n')
    assert.match(change!, /Probability: .*; Close Date: must be a valid date/)
    assert.doesNotMatch(change!, /name/)
    for (const name of ['size', 'site'])
      await api.request('DELETE', `/v1/custom-fields/deals/${name}?delete_values=true`)
  })

  it('keep all cells of a row with too many cells, however often it is resubmitted', async () => {
    const file =
      'First Name,Company name,E-Mail\nA,Acme, Inc,cells@lost.example\nB,,no address,,\nC,,cee@lost.example\n'
    const first = await imports.run({ entity: 'contacts' }, file)
    const errors = await imports.errors(first.id)
    const wrong = 'a cell that contains the delimiter must be quoted'
    assert.equal(
      errors,
      'First Name,Company name,E-Mail,error\r\n' +
        `A,Acme," Inc",line 2: the row has 4 cells and the header 3: ${wrong},cells@lost.example\r\n` +
        'B,,no address,"line 3: E-Mail: must be an email address, such as ada@example.com"\r\n',
    )
    const second = await imports.run({ entity: 'contacts' }, errors)
    assert.deepEqual([second.progress.created, second.progress.failed], [0, 2])
    const third = await imports.run({ entity: 'contacts' }, await imports.errors(second.id))
    assert.deepEqual([third.progress.created, third.progress.failed], [0, 2])
    const last = await imports.errors(third.id)
    assert.match(last, /^First Name,Company name,E-Mail,error,import_error,import_error_2\r\n/)
    const right = last
      .replace('A,Acme," Inc",', 'A,"Acme, Inc",cells@lost.example,')
      .replace(/,cells@lost.example\r\n/, '\r\n')
      .replace('no address', 'bee@lost.example')
    const done = await imports.run({ entity: 'contacts' }, right)
    assert.deepEqual([done.progress.created, done.progress.failed], [2, 0])
    assert.deepEqual(
      (await contacts('email[contains]=lost.example')).map((one: Record<string, unknown>) => [
        one.first_name,
        one.custom_fields,
      ]),
      [
        ['B', {}],
        ['C', {}],
        ['A', {}],
      ],
    )
  })

  it('keep cells that look like formulas unchanged, however often they are resubmitted', async () => {
    const file =
      "Full Name,Company name,Job title,'@Note,E-Mail\n" +
      "@Joan,@Home,+1 abc,-x,no address\n'@Joan,'@Home,'=Exp,''=y,no address\n"
    const first = await imports.run({ entity: 'contacts' }, file)
    const second = await imports.run({ entity: 'contacts' }, await imports.errors(first.id))
    const third = await imports.run({ entity: 'contacts' }, await imports.errors(second.id))
    const errors = await imports.errors(third.id)
    assert.match(errors, /^Full Name,Company name,Job title,'@Note,/)
    const done = await imports.run(
      { entity: 'contacts' },
      errors.replace('no address', 'one@formula.example').replace('no address', 'two@formula.example'),
    )
    assert.equal(done.progress.created, 2)
    const made = await contacts('email[contains]=formula.example')
    assert.deepEqual(
      made.map((one: Record<string, unknown>) => [one.first_name, one.job_title, one.custom_fields]),
      [
        ['@Joan', '+1 abc', { note: '-x' }],
        ['@Joan', '=Exp', { note: "'=y" }],
      ],
    )
    assert.equal(made[0].company_id, made[1].company_id)
    const company = await api.request('GET', `/v1/objects/companies/${made[0].company_id}`)
    assert.equal(company.body.name, '@Home')
  })

  it('update existing records and create the others, by any key', async () => {
    await api.request('POST', '/v1/objects/contacts', {
      body: {
        email: 'Eve@upsert.example',
        first_name: 'Eve',
        last_name: 'Old',
        tags: ['kept'],
        do_not_contact: true,
        address: { line1: 'Here 1', city: 'Here' },
      },
    })
    const file =
      'E-mail,Last name,Tags,City\neve@UPSERT.example,New,,There\nfay@upsert.example,Fay,a;b,\nfay@upsert.example,Fey,,\n,Nobody,,\n'
    const values = { entity: 'contacts', mode: 'upsert', by: 'email' }
    const done = await imports.run(values, file)
    assert.deepEqual(done.progress, { rows: 4, created: 1, updated: 2, skipped: 0, failed: 1, line: 6 })
    const [eve, fay] = await contacts('email[contains]=upsert.example')
    assert.deepEqual(
      [eve.first_name, eve.last_name, eve.tags, eve.do_not_contact, eve.version],
      ['Eve', 'New', ['kept'], true, 2],
    )
    assert.deepEqual(eve.address, { line1: 'Here 1', city: 'There' })
    assert.deepEqual([fay.last_name, fay.tags], ['Fey', ['a', 'b']])
    assert.match(await imports.errors(done.id), /line 5: E-mail: is empty or not a valid upsert key/)
    const again = await imports.run(values, file.replace('fay@upsert.example,Fay,a;b,\n', ''))
    assert.deepEqual([again.progress.skipped, again.progress.updated], [2, 0])

    await api.request('POST', '/v1/objects/deals', { body: { external_id: 'd1', name: 'First' } })
    const deals = await imports.run(
      { entity: 'deals', mode: 'upsert', by: 'external_id' },
      'external_id,amount\nd1,"1,250.00"\nd2,5\n',
    )
    assert.deepEqual([deals.progress.updated, deals.progress.failed], [1, 1])
    assert.match(await imports.errors(deals.id), /d2,5,line 3: name: is required/)
  })

  it('find records by a unique custom field, and fail as a whole once it is no longer unique', async () => {
    const define = (method: string, path: string, body: object) =>
      api.request(method, `/v1/custom-fields/contacts${path}`, { body })
    await define('POST', '', { name: 'member_no', label: 'Member number', type: 'number', unique: true })
    const values = { entity: 'contacts', mode: 'upsert', by: 'custom_fields.member_no' }
    const file = 'Member number,First name\n7,Mia\n8,Max\n'
    assert.equal((await imports.run(values, file)).progress.created, 2)
    const again = await imports.run(values, file.replace('Mia', 'Maya').replace('8,', '8.0,'))
    assert.deepEqual([again.progress.updated, again.progress.skipped], [1, 1])
    const { body } = await imports.prepare(values, file)
    await define('PATCH', '/member_no', { unique: false })
    await imports.start(body.id)
    const failed = await imports.ended(body.id)
    assert.equal(failed.status, 'failed')
    assert.match(failed.error.message, /custom_fields.member_no is not a unique custom field/)
  })

  it('try every row and write none in a dry run, and can then be started', async () => {
    const file = 'external_id,name,company\nt1,Tim Two,Acme Tried\nt1,Tim Again,Acme Tried\nt3,,\n'
    const tried = await imports.run({ entity: 'contacts', dry_run: true }, file)
    assert.deepEqual(tried.progress, { rows: 3, created: 1, updated: 0, skipped: 0, failed: 2, line: 5 })
    assert.match(
      await imports.errors(tried.id),
      /line 3: external_id: another contact has the external_id t1/,
    )
    assert.deepEqual(await contacts('external_id[in]=t1,t3'), [])
    await imports.start(tried.id, { dry_run: false })
    const done = await imports.ended(tried.id)
    assert.deepEqual(done.progress, tried.progress)
    const [tim] = await contacts('external_id=t1')
    assert.deepEqual([tim.first_name, tim.last_name], ['Tim', 'Two'])
    const companies = await api.request('GET', '/v1/objects/companies?name=acme%20tried')
    assert.deepEqual([companies.body.data.length, companies.body.data[0].id], [1, tim.company_id])
    assert.equal((await imports.start(tried.id)).status, 409)
  })

  it('report the same in a dry run as in the import, also for rows that are far apart', async () => {
    const many = Array.from({ length: 450 }, (_, i) => `far${i},far${i}@x.example,F\n`).join('')
    const file = `external_id,email,first_name\n${many}far3,other@x.example,G\nfar9,FAR9@x.example,H\n`
    for (const values of [{ mode: 'create' }, { mode: 'upsert', by: 'email' }]) {
      const own = file.replaceAll('far', `far-${values.mode}`).replaceAll('FAR', `FAR-${values.mode}`)
      const tried = await imports.run({ entity: 'contacts', ...values, dry_run: true }, own)
      const reported = await imports.errors(tried.id)
      await imports.start(tried.id, { dry_run: false })
      const done = await imports.ended(tried.id)
      assert.deepEqual(tried.progress, done.progress)
      const wrong = values.mode === 'create' ? 2 : 1
      assert.deepEqual([done.progress.updated, done.progress.failed], [2 - wrong, wrong])
      const rowsOf = (errors: string) => errors.split('\r\n').map((line) => line.split(',')[0])
      assert.deepEqual(rowsOf(reported), rowsOf(await imports.errors(done.id)))
    }
    assert.equal(Number((await db.system('import_keys').count().first())!.count), 0)
  })

  it('stop after a row and resume after it', async () => {
    const rows = 3_000
    const file = `email\n${Array.from({ length: rows }, (_, i) => `stop${i}@x.example\n`).join('')}`
    const { body } = await imports.prepare({ entity: 'contacts' }, file)
    await imports.start(body.id)
    const post = (what: string) => api.request('POST', `/v1/imports/${body.id}/${what}`)
    await until(async () => {
      const { body: now } = await api.request('GET', `/v1/imports/${body.id}`)
      return now.progress.rows > 0 ? true : undefined
    }, 'some rows')
    const stopped = (await post('stop')).body
    assert.equal(stopped.status, 'stopped')
    assert.ok(stopped.progress.rows < rows, `${stopped.progress.rows} rows`)
    assert.equal((await contacts('email[starts_with]=stop&limit=1&count=exact')).length, 1)
    const written = async () =>
      (await api.request('GET', '/v1/objects/contacts?email[starts_with]=stop&limit=1&count=exact')).body
        .total
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.equal(await written(), stopped.progress.created)
    assert.equal((await post('resume')).body.status, 'queued')
    const done = await imports.ended(body.id)
    assert.deepEqual([done.status, done.progress.created, await written()], ['completed', rows, rows])
    const handle = worker.client.workflow.getHandle(`import:${body.id}:2`)
    assert.deepEqual(await handle.result(), { status: 'completed' })
    const { typedSearchAttributes } = await handle.describe()
    assert.equal(typedSearchAttributes.get(searchAttributes.organization), api.organizationId)
  })

  for (const verb of ['cancel', 'terminate'] as const)
    it(`stop when an operator ${verb}s their workflow, and are resumed`, async () => {
      const rows = 3_000
      const emails = Array.from({ length: rows }, (_, i) => `${verb}${i}@x.example\n`)
      const { body } = await imports.prepare({ entity: 'contacts' }, `email\n${emails.join('')}`)
      const get = async () => (await api.request('GET', `/v1/imports/${body.id}`)).body
      await imports.start(body.id)
      await until(async () => (await get()).progress.rows > 0, 'some rows')
      const workflow = worker.client.workflow.getHandle(`import:${body.id}`)
      await workflow[verb]()
      await assert.rejects(workflow.result())
      const sweep = new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog })
      await until(async () => {
        await sweep.glance()
        return (await get()).status === 'stopped' ? true : undefined
      }, 'the stop')
      await sweep.close()
      await api.request('POST', `/v1/imports/${body.id}/resume`)
      const done = await imports.ended(body.id)
      assert.deepEqual([done.status, done.progress.created], ['completed', rows])
    })

  it('end with their workflow, and are resumed', async () => {
    const { body } = await imports.prepare({ entity: 'contacts' }, 'email\nlost@x.example\n')
    const { id } = body
    // Simulates an import whose workflow was terminated before its first row.
    await db
      .system('imports')
      .where({ id })
      .update({ status: 'running', starts: 1, targets: { email: 'email' } })
    const sweep = new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog })
    await sweep.once('0 seconds')
    const stopped = (await api.request('GET', `/v1/imports/${id}`)).body
    assert.deepEqual(
      [stopped.status, stopped.error.message],
      ['stopped', "Temporal no longer has the import's workflow."],
    )
    await api.request('POST', `/v1/imports/${id}/resume`)
    assert.equal(
      (
        await until(async () => {
          const { body } = await api.request('GET', `/v1/imports/${id}`)
          return body.status === 'completed' ? body : undefined
        }, 'the end')
      ).progress.created,
      1,
    )
  })

  it('write no row twice if two workers process the same rows', async () => {
    const { body } = await imports.prepare({ entity: 'contacts' }, 'email\ntwice@x.example\n')
    const { id } = body
    await db
      .system('imports')
      .where({ id })
      .update({ status: 'running', starts: 1, targets: { email: 'email' } })
    const read: Read = {
      rows: [{ cells: ['twice@x.example'], line: 2, end: { byte: 22, line: 3 } }],
      end: 'end',
    }
    const turn = (start: number) =>
      db.tenant(api.organizationId, testActor, (tx) => advanceImport(tx, { id, start }, 6, read))
    const turns = await Promise.all([turn(1), turn(1), turn(2)])
    assert.deepEqual(turns.map((row) => row?.status).sort(), ['completed', undefined, undefined])
    assert.equal((await contacts('email=twice@x.example')).length, 1)
  })

  it('end a workflow whose import was started again', async () => {
    const { body } = await imports.prepare({ entity: 'contacts' }, 'email\n')
    await db.system('imports').where({ id: body.id }).update({ status: 'running', starts: 2 })
    const input = { organization_id: api.organizationId, id: body.id, start: 1, summary: 'import' }
    const result = await worker.client.workflow.execute('importRecords', {
      taskQueue: worker.taskQueue,
      workflowId: `import:${body.id}`,
      workflowExecutionTimeout: '5 seconds',
      args: [input],
    })
    assert.deepEqual(result, { status: 'stopped' })
    await db.system('imports').where({ id: body.id }).update({ status: 'stopped' })
  })

  it('skip a row whose company cannot be created, and continue', async () => {
    const file = `email,company name\nlong@company.example,${'x'.repeat(300)}\nshort@company.example,Short\n`
    const done = await imports.run({ entity: 'contacts' }, file)
    assert.deepEqual([done.status, done.progress.created, done.progress.failed], ['completed', 1, 1])
    assert.match(
      await imports.errors(done.id),
      /company name: the company cannot be created: name: must have at most/,
    )

    const definition = { name: 'tier', type: 'text', required: true }
    await api.request('POST', '/v1/custom-fields/companies', { body: definition })
    const other = await imports.run({ entity: 'contacts' }, 'email,company name\na@tier.example,New\n')
    assert.deepEqual([other.status, other.progress.failed], ['completed', 1])
    assert.match(
      await imports.errors(other.id),
      /company name: the company cannot be created: custom_fields.tier: required/,
    )
    await api.request('DELETE', '/v1/custom-fields/companies/tier')
  })

  it('skip a row that the database refuses, and continue', async () => {
    const owner = new pg.Client({ connectionString: db.url })
    await owner.connect()
    await owner.query(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'no' using errcode = '54000'; end $$;
      create trigger refuse before insert on contacts for each row
        when (new.first_name = 'Poison') execute function refuse()`)
    await owner.end()
    const done = await imports.run({ entity: 'contacts' }, 'first_name\nBefore\nPoison\nBehind\n')
    assert.deepEqual([done.status, done.progress.created, done.progress.failed], ['completed', 2, 1])
    assert.match(await imports.errors(done.id), /Poison,line 3: the row cannot be stored/)
  })

  it('keep rows out of the history of the workflow', async () => {
    const done = await imports.run({ entity: 'contacts' }, 'email\nhistory@secret.example\n')
    await worker.client.workflow.getHandle(`import:${done.id}`).result()
    const events = await historyOf(worker.client, `import:${done.id}`)
    assert.ok(events.length > 5)
    assert.ok(!Buffer.from(JSON.stringify(events)).toString().includes('secret.example'))
    const encoded = Buffer.from('secret.example').toString('base64').slice(2, 14)
    assert.ok(!JSON.stringify(events).includes(encoded))
  })
})
