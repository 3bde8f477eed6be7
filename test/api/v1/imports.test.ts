import assert from 'node:assert/strict'
import { createKey, startApi, type TestApi } from '../../support/api.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { importsOf } from '../../support/imports.ts'
import { until } from '../../support/until.ts'

const ID = '01890000-0000-7000-8000-000000000000'

/** The proposed field of each column of an uploaded file. */
const format = { decimal: null, date: null, open: [] }
/** What a column has beside its proposal. */
const open = { dropped: null, values: null, format }

const proposed = (body: { file: { columns: { name: string; proposed: string | null }[] } }) =>
  Object.fromEntries(body.file.columns.map(({ name, proposed }) => [name, proposed]))

describe('imports before they run', () => {
  let db: TestDatabase
  let api: TestApi
  let imports: ReturnType<typeof importsOf>

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    imports = importsOf(api)
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  const prepare = (file: string | Uint8Array, values: object = {}) =>
    imports.prepare({ entity: 'contacts', ...values }, file)
  const keyWith = async (...scopes: ('contacts:read' | 'contacts:write' | 'tasks:write')[]) =>
    (await createKey(db, api.organizationId, { scopes })).key

  describe('the file', () => {
    it('is detected: encoding, delimiter, columns, samples', async () => {
      const { body, status } = await prepare('Vorname;E-Mail;Ort\r\nZoë;zoe@x.example;"Genf; Stadt"\r\n')
      assert.equal(status, 200)
      assert.equal(body.status, 'ready')
      assert.deepEqual(body.file, {
        bytes: 54,
        rows: 1,
        encoding: 'utf-8',
        delimiter: ';',
        columns: [
          { name: 'Vorname', proposed: 'first_name', samples: ['Zoë'], ...open },
          { name: 'E-Mail', proposed: 'email', samples: ['zoe@x.example'], ...open },
          { name: 'Ort', proposed: 'address.city', samples: ['Genf; Stadt'], ...open },
        ],
        source: null,
        available: true,
      })
    })

    const text = 'name\tcity\nZoë\tGenève\n'
    const utf16 = Buffer.from(text, 'utf16le')
    for (const [name, bytes, encoding] of [
      ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`), 'utf-8'],
      ['Windows-1252', Buffer.from(text, 'latin1'), 'windows-1252'],
      ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${text}`, 'utf16le'), 'utf-16le'],
      ['UTF-16 without a byte order mark', utf16, 'utf-16le'],
      ['UTF-16 big-endian', Buffer.from(Buffer.from(`\ufeff${text}`, 'utf16le')).swap16(), 'utf-16be'],
    ] as const)
      it(`is read in ${name}`, async () => {
        const { body } = await prepare(bytes)
        assert.deepEqual([body.file.encoding, body.file.delimiter, body.file.rows], [encoding, '\t', 1])
        assert.deepEqual(body.file.columns[0].samples, ['Zoë'])
        assert.deepEqual(body.file.columns[1].samples, ['Genève'])
      })

    it('may have a wrong byte: it is shown as such, and stops nothing', async () => {
      const wrong = Buffer.from([0x5a, 0xeb, 0x0a])
      const { body, status } = await prepare(Buffer.concat([Buffer.from('\ufeffname\nGenève\n'), wrong]))
      assert.equal(status, 200)
      assert.deepEqual(body.file.columns[0].samples, ['Genève', 'Z\ufffd'])
    })

    it('can declare its charset, and its delimiter as in Excel', async () => {
      const created = await api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
      const { body } = await imports.upload(
        created.body.id,
        Buffer.from('sep=|\r\nname|price\r\n\x80|1\r\n', 'latin1'),
        {
          'Content-Type': 'text/csv; charset=ISO-8859-1',
        },
      )
      assert.deepEqual([body.file.encoding, body.file.delimiter], ['windows-1252', '|'])
      assert.deepEqual(body.file.columns[0], { name: 'name', proposed: 'full_name', samples: ['€'], ...open })
      assert.equal(body.progress.line, 3)
    })

    it('can contain any characters in its rows', async () => {
      const { body, status } = await prepare(`name\n${'a'.repeat(99)}😀\n`)
      assert.equal(status, 200)
      assert.deepEqual(body.file.columns[0].samples, [`${'a'.repeat(99)}\ufffd`])
      assert.equal((await prepare('sep=\0\nname\0b\nx\0y\n')).status, 422)
      const other = await api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
      const type = { 'Content-Type': 'text/csv; charset=constructor' }
      assert.equal((await imports.upload(other.body.id, 'name\nx\n', type)).status, 415)
    })

    it('is read in linear time, with a long header and many empty lines: squares would take minutes', async () => {
      const wide = Array.from({ length: 100_000 }, (_, i) => `c${i}`).join(',')
      assert.equal((await prepare(`${wide}\n`)).body.detail.length, 1)
      assert.equal((await prepare(`name,a@${'.'.repeat(900_000)}@\nx,y\n`)).status, 200)
      const { body } = await prepare(`name\n${'\r\n'.repeat(1_000_000)}"x`)
      assert.match(body.error.message, /line 1000002 has an unclosed quote/)
    })

    it('replaces the previous file', async () => {
      const first = await prepare('email\na@x.example\n')
      const { body } = await imports.upload(first.body.id, 'email\na@x.example\nb@x.example\n')
      assert.equal(body.file.rows, 2)
      const uploads = await db.system('import_pieces').where({ organization_id: api.organizationId })
      const { upload_id } = await db.system('imports').where({ id: first.body.id }).first()
      assert.equal(uploads.filter((piece) => piece.upload_id === upload_id).length, 1)
    })

    const refused = (name: string, file: string | Buffer, status: number, message: RegExp, hint?: RegExp) =>
      it(`is refused: ${name}`, async () => {
        const before = await db.system('import_pieces').count().first()
        const answer = await prepare(file)
        assert.equal(answer.status, status, JSON.stringify(answer.body))
        assert.match(answer.body.error.message, message)
        if (hint) assert.match(answer.body.error.hint, hint)
        assert.deepEqual(await db.system('import_pieces').count().first(), before, 'no piece is stored')
      })
    refused('an empty file', '\n\n', 422, /the file is empty/)
    refused(
      'no header',
      'ada@x.example,Ada\nbob@x.example,Bob\n',
      422,
      /the first row is not a header/,
      /add a first row/,
    )
    refused(
      'two columns with the same name',
      'email,name,email\n',
      422,
      /columns 1 and 3 are both called email/,
      /rename/,
    )
    refused('an unclosed quote', 'a,b\n1,2\n3,"x\n4,5\n', 400, /row on line 3 has an unclosed quote/, /close/)
    refused(
      'mostly another encoding than its header',
      Buffer.concat([Buffer.from('näme\n'), Buffer.from([0xff, 10, 0xff, 10])]),
      400,
      /two encodings: 1 lines are UTF-8 and 2 are not/,
      /encoding windows-1252/,
    )

    refused(
      'a workbook',
      Buffer.from('504b030414000600', 'hex'),
      400,
      /is a workbook, not CSV/,
      /save the sheet/,
    )
    refused('NUL in the header', 'a\0b,c\n1,2\n', 422, /the first row contains NUL/)

    it('can contain NUL after the header: only its row fails', async () => {
      const { body } = await prepare('email,note\na@x.example,a\0b\n')
      assert.deepEqual(body.file.columns[1].samples, ['a\ufffdb'])
    })

    it('is refused above 32 MiB, and with other content types', async () => {
      const { body } = await api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
      const large = await imports.upload(body.id, Buffer.alloc(32 * 1024 * 1024 + 1, 'a'))
      assert.equal(large.status, 413)
      const json = await api.request('PUT', `/v1/imports/${body.id}/file`, { body: {} })
      assert.deepEqual([json.status, json.body.error.hint], [415, 'send Content-Type: text/csv'])
    })

    it('is not stored if the upload is aborted', async () => {
      const { body } = await api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
      const before = await db.system('import_pieces').count().first()
      const gone = new AbortController()
      const half = new ReadableStream({
        async pull(controller) {
          controller.enqueue(Buffer.from(`email\n${'a@x.example\n'.repeat(60_000)}`))
          await new Promise((resolve) => setTimeout(resolve, 300))
          gone.abort()
          // An open stream would be pulled for ever, and this process would not exit.
          controller.error(gone.signal.reason)
        },
      })
      await assert.rejects(
        fetch(`${api.url}/v1/imports/${body.id}/file`, {
          method: 'PUT',
          headers: { authorization: `Bearer ${api.key}`, 'content-type': 'text/csv' },
          body: half,
          duplex: 'half',
          signal: gone.signal,
        } as RequestInit),
      )
      await until(async () => {
        const now = await db.system('import_pieces').count().first()
        return now?.count === before?.count ? true : undefined
      }, 'the pieces to go')
      assert.equal((await api.request('GET', `/v1/imports/${body.id}`)).body.status, 'created')
    })

    it('proposes no custom fields in strict mode', async () => {
      const organizationId = await createOrganization(db, { settings: { strict_custom_fields: true } })
      const { key } = await createKey(db, organizationId)
      const strict = importsOf({ request: (m, p, o) => api.request(m, p, { key, ...o }) })
      const { body } = await strict.prepare({ entity: 'contacts' }, 'email,Shoe size\n')
      assert.deepEqual(proposed(body), { email: 'email', 'Shoe size': null })
      const start = await strict.start(body.id, { mapping: { 'Shoe size': 'custom_fields.shoe_size' } })
      assert.deepEqual(
        [start.status, start.body.error.message],
        [422, 'mapping.Shoe size: custom_fields.shoe_size cannot be written'],
      )
    })

    it('maps the columns of a HubSpot export', async () => {
      const header =
        'Record ID,First Name,Last Name,Email,Phone Number,Mobile Phone Number,Contact owner,Lifecycle Stage,Lead Status,Job Title,Company name,Website URL,Street Address,City,State/Region,Postal Code,Country/Region,Create Date,Last Modified Date,Last contacted,Favorite Color'
      const { body } = await prepare(`${header}\n`)
      assert.deepEqual(proposed(body), {
        'Record ID': 'external_id',
        'First Name': 'first_name',
        'Last Name': 'last_name',
        Email: 'email',
        'Phone Number': 'phone',
        'Mobile Phone Number': 'mobile_phone',
        'Contact owner': 'owner_id',
        'Lifecycle Stage': 'lifecycle_stage',
        'Lead Status': 'lead_status',
        'Job Title': 'job_title',
        'Company name': 'company_name',
        'Website URL': 'website',
        'Street Address': 'address.line1',
        City: 'address.city',
        'State/Region': 'address.state',
        'Postal Code': 'address.postal_code',
        'Country/Region': 'address.country',
        'Create Date': 'created_at',
        'Last Modified Date': null,
        'Last contacted': 'last_contacted_at',
        'Favorite Color': 'custom_fields.favorite_color',
      })
      const deals = await prepare(
        'Record ID,Deal Name,Deal Stage,Close Date,Amount,Pipeline,Deal Type,Associated Company\n',
        { entity: 'deals' },
      )
      assert.deepEqual(proposed(deals.body), {
        'Record ID': 'external_id',
        'Deal Name': 'name',
        'Deal Stage': 'stage',
        'Close Date': 'close_date',
        Amount: 'amount',
        Pipeline: 'pipeline',
        'Deal Type': 'deal_type',
        'Associated Company': 'company_name',
      })
    })

    for (const [entity, columns] of Object.entries({
      activities: {
        Type: 'type',
        Subject: 'subject',
        Date: 'occurred_at',
        Description: 'body',
        'Call Outcome': 'outcome',
        'Duration (seconds)': 'duration_seconds',
        // Ambiguous without a unit.
        Duration: 'custom_fields.duration',
      },
      notes: { Subject: 'title', Content: 'body' },
      tasks: {
        Subject: 'title',
        'Due Date': 'due_at',
        Description: 'body',
        'Assigned To': 'assignee_id',
      },
      deals: {
        Opportunity: 'name',
        'Account Name': 'company_name',
        Description: 'custom_fields.description',
      },
      companies: { Company: 'name', Description: 'description', Date: 'custom_fields.date' },
    }))
      it(`maps common column names of ${entity}`, async () => {
        const { key } = await createKey(db, await createOrganization(db))
        const own = importsOf({ request: (m, p, o) => api.request(m, p, { key, ...o }) })
        const { body } = await own.prepare({ entity }, `${Object.keys(columns).join(',')}\n`)
        assert.deepEqual(proposed(body), columns)
      })
  })

  describe('the start', () => {
    it('reports all issues of the mapping', async () => {
      const { body } = await prepare('Name,Mail,Extra\n', { mapping: { Name: 'nickname' } })
      const answer = await imports.start(body.id, {
        mapping: { Mail: 'last_name', Extra: 'last_name', Gone: 'email' },
      })
      assert.equal(answer.status, 422)
      assert.deepEqual(
        answer.body.detail.map((one: { loc: string[]; msg: string }) => `${one.loc.join('.')}: ${one.msg}`),
        [
          'body.mapping.Name: nickname cannot be written',
          'body.mapping.Gone: the file has no such column',
          'body.mapping.Extra: Mail is already mapped to last_name',
        ],
      )
    })

    it('limits the mapping to the maximum number of columns', async () => {
      const { body } = await prepare('Name\n')
      const mapping = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`c${i}`, 'email']))
      const answer = await imports.start(body.id, { mapping })
      assert.deepEqual([answer.status, answer.body.detail.length], [422, 1])
    })

    it('requires the columns that every row requires', async () => {
      const company = await prepare('Website\n', { entity: 'companies' })
      const answer = await imports.start(company.body.id)
      assert.deepEqual(
        [answer.status, answer.body.error.message],
        [422, 'mapping: no column is mapped to name, which is required'],
      )
      const upsert = await prepare('Name\n', { mode: 'upsert', by: 'email' })
      const other = await imports.start(upsert.body.id)
      assert.match(other.body.error.message, /no column is mapped to email/)
      const { body } = await prepare('Shoe size\n')
      assert.match(
        (await imports.start(body.id)).body.error.message,
        /any of email, phone, first_name, last_name/,
      )
    })

    it('requires a file, and is possible only once', async () => {
      const { body } = await api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
      const early = await imports.start(body.id)
      assert.deepEqual([early.status, early.body.error.message], [409, 'the import has no file yet'])
      await imports.upload(body.id, 'email\na@x.example\n')
      assert.equal((await imports.start(body.id)).body.status, 'queued')
      assert.equal((await imports.start(body.id)).status, 409)
      assert.equal((await imports.upload(body.id, 'email\n')).status, 409)
    })

    it('queues the import, which can be stopped and resumed', async () => {
      const { body } = await prepare('email\na@x.example\n')
      const post = (what: string) => api.request('POST', `/v1/imports/${body.id}/${what}`)
      assert.equal((await post('stop')).status, 409)
      assert.equal((await post('resume')).status, 409)
      await imports.start(body.id)
      assert.equal((await post('stop')).body.status, 'stopped')
      assert.equal((await post('stop')).body.status, 'stopped')
      assert.equal((await imports.start(body.id)).body.error.hint, 'resume it')
      assert.equal((await post('resume')).body.status, 'queued')
      assert.equal((await post('resume')).body.status, 'queued')
    })

    it('requires write on the kinds that columns link', async () => {
      const key = await keyWith('contacts:write')
      const { body } = await prepare('email,Company\n')
      const answer = await api.request('POST', `/v1/imports/${body.id}/start`, { key })
      assert.deepEqual(
        [answer.status, answer.body.error.message],
        [403, 'the key lacks the scope companies:write'],
      )
      const without = await api.request('POST', `/v1/imports/${body.id}/start`, {
        key,
        body: { mapping: { Company: null } },
      })
      assert.equal(without.status, 200)

      // A resume requires the same scopes.
      const other = await prepare('email,Company\n')
      await imports.start(other.body.id)
      await api.request('POST', `/v1/imports/${other.body.id}/stop`, { key })
      const resumed = await api.request('POST', `/v1/imports/${other.body.id}/resume`, { key })
      assert.deepEqual(
        [resumed.status, resumed.body.error?.message],
        [403, 'the key lacks the scope companies:write'],
      )
    })
  })

  describe('access', () => {
    it('requires the scope of the kind', async () => {
      const { body } = await prepare('email\n')
      const reader = await keyWith('contacts:read')
      const other = await keyWith('tasks:write')
      const at = (method: string, path: string, key: string) =>
        api.request(method, `/v1/imports/${body.id}${path}`, { key })
      assert.equal((await at('GET', '', reader)).status, 200)
      assert.equal((await at('GET', '/errors', reader)).status, 200)
      for (const path of ['/start', '/stop', '/resume'])
        assert.equal(
          (await at('POST', path, reader)).body.error.message,
          'the key lacks the scope contacts:write',
        )
      assert.equal((await at('GET', '', other)).status, 403)
      assert.equal(
        (await api.request('POST', '/v1/imports', { key: other, body: { entity: 'contacts' } })).status,
        403,
      )
      const list = await api.request('GET', '/v1/imports', { key: other })
      assert.deepEqual([list.status, list.body.data], [200, []])
      assert.ok((await api.request('GET', '/v1/imports?limit=2', { key: reader })).body.data.length === 2)
    })

    it('is refused with 404 for another organization', async () => {
      const { body } = await prepare('email\n')
      const { key } = await createKey(db, await createOrganization(db))
      for (const id of [body.id, ID, 'nonsense']) {
        for (const [method, path] of [
          ['GET', ''],
          ['GET', '/errors'],
          ['POST', '/start'],
          ['POST', '/stop'],
          ['POST', '/resume'],
        ])
          assert.equal(
            (await api.request(method!, `/v1/imports/${id}${path}`, { key })).status,
            404,
            `${method} ${path}`,
          )
        const put = await importsOf({ request: (m, p, o) => api.request(m, p, { key, ...o }) }).upload(
          id,
          'email\n',
        )
        assert.equal(put.status, 404)
      }
    })
  })

  it('are refused with all issues of the body', async () => {
    const bad = async (body: object) => {
      const answer = await api.request('POST', '/v1/imports', { body })
      assert.equal(answer.status, 422, JSON.stringify(answer.body))
      return answer.body.detail.map((one: { loc: string[] }) => one.loc.join('.'))
    }
    assert.deepEqual(await bad({ entity: 'things', mode: 'merge', colour: 1 }), [
      'body.entity',
      'body.mode',
      'body.colour',
    ])
    assert.deepEqual(await bad({ entity: 'contacts', mode: 'upsert' }), ['body.by'])
    assert.deepEqual(await bad({ entity: 'contacts', mode: 'upsert', by: 'phone' }), ['body.by'])
    assert.deepEqual(await bad({ entity: 'contacts', by: 'email' }), ['body.by'])
    assert.deepEqual(await bad({ entity: 'contacts', mode: 'upsert', by: 'custom_fields.no' }), ['body.by'])
  })
})
