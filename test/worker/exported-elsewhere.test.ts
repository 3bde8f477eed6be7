import assert from 'node:assert/strict'
import { importsOf } from '../support/imports.ts'
import { sessionHeaders } from '../support/session.ts'
import { withApiAndWorker } from '../support/with-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any
type Row = Record<string, string>

const ROWS = 100

const csv = (rows: Row[]): string => {
  const columns = Object.keys(rows[0]!)
  const cell = (text: string) => (/[",\n;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  return [columns, ...rows.map((row) => columns.map((name) => row[name] ?? ''))]
    .map((cells) => `${cells.map(cell).join(',')}\r\n`)
    .join('')
}
const many = <T>(make: (n: number) => T): T[] => Array.from({ length: ROWS }, (_, n) => make(n))
const pad = (n: number) => String(n).padStart(3, '0')

/** Files in the form of the exports of other systems, with their mess, and what must come of each row. */
describe('exports of other systems', function () {
  this.timeout(120_000)
  const on = withApiAndWorker()
  let owner: { id: string; name: string; email: string }

  before(async () => {
    await sessionHeaders(on.db, on.api, 'owner')
    owner = (
      await on.db.system.raw(
        'select u.id, u.name, u.email from users u join memberships m on m.user_id = u.id where m.organization_id = ? limit 1',
        [on.api.organizationId],
      )
    ).rows[0]
    await on.db.system('users').where({ id: owner.id }).update({ name: 'Jane Doe' })
  })

  /** Imports a file by its proposal and the decisions, and compares each record with what is expected of its row. */
  async function check(
    kind: string,
    rows: Row[],
    by: string,
    expected: (n: number) => { key: string; record: object } | { refused: RegExp },
    decisions: object = {},
  ): Promise<Json> {
    const imports = importsOf(on.api)
    const { body: file } = await imports.prepare({ entity: kind, mode: 'upsert', by }, csv(rows))
    for (const { name, proposed, dropped } of file.file.columns)
      assert.ok(proposed !== null || dropped !== null, `${name} is lost without a word`)
    const done = await imports
      .start(file.id, decisions)
      .then(
        (started) => (
          assert.equal(started.status, 200, JSON.stringify(started.body)), imports.ended(file.id)
        ),
      )
    assert.equal(done.status, 'completed', JSON.stringify(done))
    const errors = await imports.errors(file.id)
    for (let n = 0; n < rows.length; n++) {
      const one = expected(n)
      if ('refused' in one) {
        const line = errors.split('\r\n').find((text) => text.includes(Object.values(rows[n]!)[0]!))
        assert.match(line ?? errors, one.refused, JSON.stringify(rows[n]))
        continue
      }
      const found = await on.api.request('GET', `/v1/objects/${kind}?${by}=${encodeURIComponent(one.key)}`)
      const [record] = found.body.data
      assert.ok(record, `${one.key}: ${errors.slice(0, 2_000)}`)
      for (const [field, value] of Object.entries(one.record))
        assert.deepEqual(record[field], value, `${one.key}: ${field}`)
    }
    return file.file
  }

  it('of Google Contacts', async () => {
    const rows = many(
      (n): Row => ({
        'First Name': `Ada ${n}`,
        'Middle Name': '',
        'Last Name': n % 7 === 0 ? 'O’Brien' : 'Lovelace',
        'Phonetic First Name': '',
        'File As': '',
        'Organization Name': `Mill ${n % 5}`,
        'Organization Title': 'Baker',
        Birthday: '',
        Notes: '',
        Photo: 'https://lh3.example/x',
        Labels: '* myContacts ::: Friends',
        'E-mail 1 - Label': '* Work',
        'E-mail 1 - Value':
          n % 3 === 0
            ? `g${pad(n)}@mail.example ::: second${pad(n)}@mail.example`
            : `g${pad(n)}@mail.example`,
        'E-mail 2 - Label': 'Home',
        'E-mail 2 - Value': n % 4 === 0 ? `home${pad(n)}@mail.example` : '',
        'Phone 1 - Label': 'Mobile',
        'Phone 1 - Value': `+49 171 2345${pad(n)} ::: +49 30 5551${pad(n)}`,
        'Address 1 - Street': 'Main St 1\nApt 2',
        'Address 1 - City': 'Ulm',
        'Address 1 - Postal Code': '89073',
        'Address 1 - Country': 'DE',
      }),
    )
    const file = await check('contacts', rows, 'email', (n) => ({
      key: `g${pad(n)}@mail.example`,
      record: {
        first_name: `Ada ${n}`,
        last_name: n % 7 === 0 ? 'O’Brien' : 'Lovelace',
        job_title: 'Baker',
        tags: ['* mycontacts', 'friends'],
        phone: `+491712345${pad(n)}`,
        custom_fields: {
          ...((n % 3 === 0 || n % 4 === 0) && {
            other_emails: [
              ...(n % 3 === 0 ? [`second${pad(n)}@mail.example`] : []),
              ...(n % 4 === 0 ? [`home${pad(n)}@mail.example`] : []),
            ],
          }),
          other_phones: [`+49 30 5551${pad(n)}`],
        },
      },
    }))
    assert.equal(file.source, 'google')
    const dropped = Object.fromEntries(file.columns.map(({ name, dropped }: Json) => [name, dropped]))
    assert.equal(dropped['E-mail 1 - Label'], 'it only names the kind of another column')
    assert.equal(dropped.Photo, 'only the other system uses it')
  })

  it('of HubSpot: companies, then contacts linked by their ids', async () => {
    const companies = many(
      (n): Row => ({
        'Record ID': `90${pad(n)}`,
        'Company name': `Works ${n}`,
        'Company owner': n % 9 === 8 ? 'Left Long Ago' : 'Jane Doe',
        'Create Date': '2021-03-04 10:11',
        'Phone Number': '',
        'Last Activity Date': '2024-01-01 00:00',
        City: 'Bonn',
        'Country/Region': 'Germany',
        Industry: 'MACHINERY',
        'Number of Associated Contacts': '3',
      }),
    )
    const file = await check(
      'companies',
      companies,
      'external_id',
      (n) => ({
        key: `90${pad(n)}`,
        record: {
          name: `Works ${n}`,
          owner_id: n % 9 === 8 ? null : owner.id,
          industry: 'MACHINERY',
          created_at: '2021-03-04T10:11:00.000Z',
        },
      }),
      { values: { 'Company owner': { 'Left Long Ago': null } } },
    )
    const owners = file.columns.find(({ name }: Json) => name === 'Company owner')
    assert.equal(file.source, 'hubspot')
    assert.deepEqual(
      owners.values.map(({ value, proposed }: Json) => [value, proposed]),
      [
        ['Jane Doe', owner.id],
        ['Left Long Ago', null],
      ],
    )
    const contacts = many(
      (n): Row => ({
        'Record ID': `51${pad(n)}`,
        'First Name': 'Max',
        'Last Name': `Hub ${n}`,
        Email: n % 10 === 9 ? `"Max Hub" <h${pad(n)}@mail.example>` : `h${pad(n)}@mail.example`,
        'Phone Number': '',
        'Contact owner': owner.email,
        'Lead Status': n % 2 ? 'Attempted to Contact' : 'Open Deal',
        'Lifecycle Stage': 'Sales Qualified Lead',
        'Unsubscribed from all email': n % 5 === 0 ? 'true' : '',
        'Associated Company IDs': n % 20 === 19 ? '404' : `90${pad(n)};90001`,
        'Associated Company': `Works ${n}`,
        'Marketing contact status': 'Marketing contact',
      }),
    )
    const ids = new Map<string, string>()
    for (let offset = 0; ids.size < ROWS && offset < 400; offset += 100) {
      const page = await on.api.request(
        'GET',
        `/v1/objects/companies?limit=100&offset=${offset}&fields=external_id`,
      )
      for (const { external_id, id } of page.body.data) if (external_id) ids.set(external_id, id)
    }
    await check(
      'contacts',
      contacts,
      'external_id',
      (n) =>
        n % 20 === 19
          ? { refused: /there is no company with the external_id 404/ }
          : {
              key: `51${pad(n)}`,
              record: {
                email: `h${pad(n)}@mail.example`,
                owner_id: owner.id,
                lead_status: n % 2 ? 'attempted' : 'open',
                lifecycle_stage: 'sql',
                do_not_contact: n % 5 === 0,
                company_id: ids.get(`90${pad(n)}`),
              },
            },
      { mapping: { 'Associated Company': null } },
    )
  })

  it('of Salesforce', async () => {
    const rows = many(
      (n): Row => ({
        Id: `003A000000${pad(n)}`,
        IsDeleted: '0',
        AccountId: '',
        LastName: `Force ${n}`,
        FirstName: 'Sal',
        MailingStreet: 'Ring 1',
        MailingCity: 'Köln',
        MailingPostalCode: '50667',
        Phone: '(030) 5557' + pad(n),
        MobilePhone: '',
        Email: `s${pad(n)}@mail.example`,
        Title: 'CTO',
        OwnerId: '005A0000001',
        LeadSource: 'Web',
        HasOptedOutOfEmail: n % 4 === 0 ? '1' : '0',
        CreatedDate: '2020-05-06T07:08:09.000Z',
        SystemModstamp: '2024-05-06T07:08:09.000Z',
      }),
    )
    const file = await check(
      'contacts',
      rows,
      'external_id',
      (n) => ({
        key: `003A000000${pad(n)}`,
        record: {
          last_name: `Force ${n}`,
          email: `s${pad(n)}@mail.example`,
          owner_id: owner.id,
          do_not_contact: n % 4 === 0,
          job_title: 'CTO',
          lead_source: 'Web',
          created_at: '2020-05-06T07:08:09.000Z',
        },
      }),
      { values: { OwnerId: { '005A0000001': 'Jane Doe' } } },
    )
    assert.equal(file.source, 'salesforce')
  })

  it('of Pipedrive', async () => {
    const rows = many(
      (n): Row => ({
        'Person - ID': `7${pad(n)}`,
        'Person - Name': `Pip Drive${n}`,
        'Person - Label': 'Customer, Hot lead',
        'Person - Organization': `Mill ${n % 5}`,
        'Person - Phone - Work': '',
        'Person - Phone - Mobile': `+49 151 1234${pad(n)}`,
        'Person - Email - Work': `p${pad(n)}@mail.example`,
        'Person - Email - Home': `private${pad(n)}@mail.example`,
        'Person - Owner': 'jane doe',
        'Person - Open deals': '2',
        'Person - Person created': '2022-02-03 04:05:06',
      }),
    )
    const file = await check('contacts', rows, 'external_id', (n) => ({
      key: `7${pad(n)}`,
      record: {
        first_name: 'Pip',
        last_name: `Drive${n}`,
        tags: ['customer', 'hot lead'],
        phone: `+491511234${pad(n)}`,
        email: `p${pad(n)}@mail.example`,
        owner_id: owner.id,
        created_at: '2022-02-03T04:05:06.000Z',
        custom_fields: { other_emails: [`private${pad(n)}@mail.example`] },
      },
    }))
    assert.equal(file.source, 'pipedrive')
  })
})
