import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { mapAutomatically } from '../../../../db/model/incoming/mapping/automatic.ts'
import { parseBody } from '../../../../db/model/incoming/parse-body.ts'
import { splitName } from '../../../../db/model/records/split-name.ts'

const fixture = (name: string) => readFileSync(new URL(`../../../fixtures/webhooks/${name}`, import.meta.url))
const mapJson = (name: string) => mapAutomatically(parseBody(fixture(name), 'application/json'), 'contacts')

describe('automatic mapping', () => {
  const ada = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }

  it('runs in linear time on a long text that is almost an address: the square would take minutes', () => {
    mapAutomatically({ email: `a@${'.'.repeat(1_000_000)}@` }, 'contacts')
  })

  for (const [first, last, email] of [
    ['firstName', 'lastName', 'email'],
    ['first_name', 'last_name', 'email_address'],
    ['FIRST-NAME', 'LAST-NAME', 'E-Mail'],
    ['First Name', 'Last Name', 'Email Address'],
    ['your-first-name', 'your-last-name', 'your-email'],
    ['Vorname', 'Nachname', 'E-Mail-Adresse'],
    ['Prénom', 'Nom', 'Courriel'],
  ] as const)
    it(`maps ${first}, ${last} and ${email}`, () => {
      const { fields } = mapAutomatically(
        { [first]: 'Ada', [last]: 'Lovelace', [email]: 'ada@example.com' },
        'contacts',
      )
      assert.deepEqual(fields, ada)
    })

  it('splits a full name', () => {
    assert.deepEqual(
      mapAutomatically({ name: 'Ada Lovelace', contact: { email: ada.email } }, 'contacts').fields,
      ada,
    )
  })

  it('reads Typeform answers by their questions', () => {
    const { fields, company_name } = mapJson('typeform.json')
    assert.equal(fields.first_name, 'Ada')
    assert.equal(fields.last_name, 'Lovelace')
    assert.equal(fields.email, 'ada@example.com')
    assert.equal(fields.phone, '+442079460000')
    assert.equal(company_name, 'Analytical Engines')
  })

  it('reads Facebook lead field data', () => {
    const { fields, company_name } = mapJson('facebook-lead.json')
    assert.deepEqual({ ...fields, phone: undefined }, { ...ada, phone: undefined })
    assert.equal(company_name, 'Analytical Engines')
  })

  it('reads a Shopify customer with its default address', () => {
    const { fields, company_name, sources } = mapJson('shopify-customer.json')
    assert.equal(fields.email, 'ada@example.com')
    assert.deepEqual(fields.tags, ['vip', 'newsletter'])
    assert.equal((fields.address as { city: string }).city, 'London')
    assert.equal(company_name, 'Analytical Engines')
    assert.equal(sources.email, 'email')
  })

  it('reads XML by element names, and answers by their label attribute', () => {
    const read = (xml: string) => mapAutomatically(parseBody(Buffer.from(xml), 'application/xml'), 'contacts')
    const { fields, sources } = read(
      '<lead><name title="Dr">Ada Lovelace</name><email type="work"><![CDATA[ada@example.com]]></email></lead>',
    )
    assert.deepEqual([fields, sources.email], [ada, 'email'])
    assert.deepEqual(
      read(
        '<form><field name="Full Name" id="1">Ada Lovelace</field><field name="Email" id="2">ada@example.com</field></form>',
      ).fields,
      ada,
    )
    const sent = 'xsi:type="xsd:string"'
    assert.deepEqual(
      read(
        `<e:Envelope xmlns:e="urn:e"><e:Body><sObject xsi:type="sf:Contact"><sf:FirstName ${sent}>Ada</sf:FirstName><sf:LastName ${sent}>Lovelace</sf:LastName><sf:Email ${sent}>ada@example.com</sf:Email></sObject></e:Body></e:Envelope>`,
      ).fields,
      ada,
    )
  })

  const read = (body: string, type = 'application/json') =>
    mapAutomatically(parseBody(Buffer.from(body), type), 'contacts')

  it('maps a list of one record like the record', () => {
    const { fields, sources, warnings } = read('[{"email":"ada@example.com"}]')
    assert.deepEqual(
      [fields, sources, warnings],
      [{ email: ada.email }, { email: 'items[0].email' }, undefined],
    )
  })

  for (const [body, type, path] of [
    ['[{"name":"Ada","email":"ada@example.com"},{"email":"b@x.io","phone":"12345678"}]', 'json', 'items'],
    [
      '{"data":[{"name":"Ada","email":"ada@example.com"},{"email":"b@x.io","phone":"1234567"}]}',
      'json',
      'data',
    ],
    [
      '<leads><lead><name>Ada</name><email k="1">ada@example.com</email></lead><lead><email>b@x.io</email><phone>1234567</phone></lead></leads>',
      'xml',
      'lead',
    ],
  ] as const)
    it(`maps nobody of several people, with a warning: ${body}`, () => {
      const { fields, warnings } = read(body, `application/${type}`)
      assert.deepEqual(fields, {})
      const names = [0, 1].map((index) => `${path}[${index}].email`).join(' and ')
      assert.deepEqual(warnings, [
        `${names} name different people: none was used; choose one by a mapping rule`,
      ])
    })

  it('maps only the first of several things, with a warning', () => {
    const payload = { data: [{ title: 'Mend the mill' }, { title: 'Oil the mill' }] }
    const { fields, warnings } = mapAutomatically(payload, 'tasks')
    assert.deepEqual(fields, { title: 'Mend the mill' })
    assert.deepEqual(warnings, ['data has several records: only data[0] was used'])
  })

  it('maps the lists within one record: answers, addresses, steps of a form', () => {
    const { fields, warnings } = read(
      JSON.stringify({
        fields: [
          { label: 'Name', value: 'Ada Lovelace' },
          { label: 'Your name', value: 'Ada' },
          { label: 'Phone', value: '+4420 7946 0000' },
        ],
        steps: [{ job_title: 'Countess' }, { email: ada.email }],
        addresses: [{ city: 'London' }, { country: 'GB' }],
        emails: [{ value: ada.email }, { value: 'c@example.com' }],
      }),
    )
    assert.deepEqual(fields, {
      ...ada,
      phone: '+4420 7946 0000',
      job_title: 'Countess',
      address: { city: 'London', country: 'GB' },
    })
    assert.equal(warnings, undefined)
  })

  it('uses the first of several addresses of one person', () => {
    for (const emails of [['ada@example.com', 'b@x.io'], [{ value: 'ada@example.com' }], 'ada@example.com'])
      assert.equal(read(JSON.stringify({ emails })).fields.email, ada.email)
    assert.equal(read('{"phones":["+442079460000"]}').fields.phone, '+442079460000')
  })

  it('maps a record with `text` or `value` as a record, not as an answer', () => {
    const flat = read('{"name":"Ada Lovelace","email":"ada@example.com","text":"Hello"}')
    assert.deepEqual(flat.fields, ada)
    const engine = { name: 'Engine', amount: '1000' }
    for (const payload of [{ title: 'Engine', value: 1000 }, { deal: { title: 'Engine', value: 1000 } }])
      assert.deepEqual(mapAutomatically(payload, 'deals').fields, engine)
  })

  it('reads answers in a list, and answers named by their key', () => {
    const list = [
      { name: 'Full name', value: 'Ada Lovelace' },
      { name: 'Email', value: 'ada@example.com' },
    ]
    assert.deepEqual(read(JSON.stringify(list)).fields, ada)
    const company = { id: 'company', title: 'Company', value: 'Engines' }
    assert.equal(read(JSON.stringify({ fields: { company } })).company_name, 'Engines')
    assert.equal(read('{"properties":{"company":{"value":"Engines"}}}').company_name, 'Engines')
  })

  it('reads a WordPress form', () => {
    const body = 'your-name=Ada+Lovelace&your-email=ada%40example.com&your-message=Hello&_wpcf7=5'
    const payload = parseBody(Buffer.from(body), 'application/x-www-form-urlencoded')
    const { fields, note } = mapAutomatically(payload, 'contacts')
    assert.deepEqual([fields, note], [ada, 'Hello'])
  })

  it('maps a deal, and only the name of its company', () => {
    const { fields, company_name, note } = mapAutomatically(
      {
        deal: { name: 'Second engine', amount: 1250, closeDate: '2026-03-01', company: { name: 'Acme' } },
        contact: { name: 'Ada', email: 'ada@example.com' },
        probability: '40',
        comments: 'By March',
      },
      'deals',
    )
    assert.deepEqual(fields, {
      name: 'Second engine',
      amount: '1250',
      expected_close_date: '2026-03-01',
      probability: 40,
    })
    assert.deepEqual([company_name, note], ['Acme', 'By March'])
  })

  it('maps the title and due date of a task', () => {
    const { fields } = mapAutomatically(
      { task: { name: 'Call', 'Due Date': '2026-03-01' }, assignee: { name: 'Grace' } },
      'tasks',
    )
    assert.deepEqual(fields, { title: 'Call', due_at: '2026-03-01' })
  })

  it('prefers plausible values, and the person to the owner', () => {
    const { fields } = mapAutomatically(
      { owner: { email: 'owner@example.com' }, email: 'none', lead: { email: 'ada@example.com' } },
      'contacts',
    )
    assert.equal(fields.email, 'ada@example.com')
  })

  it('maps an invalid email if there is no better one, so that validation reports it', () => {
    assert.equal(mapAutomatically({ email: 'not-an-email' }, 'contacts').fields.email, 'not-an-email')
  })

  it('maps the name of a company', () => {
    const mapped = mapAutomatically({ company: { name: 'Acme', website: 'https://acme.test' } }, 'companies')
    assert.equal(mapped.fields.name, 'Acme')
    assert.equal(mapped.fields.website, 'https://acme.test')
  })

  it('never throws, and maps only values of the payload', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (payload) => {
        const before = JSON.stringify(payload)
        mapAutomatically(payload, 'contacts')
        mapAutomatically(payload, 'companies')
        assert.equal(JSON.stringify(payload), before)
      }),
    )
  })
})

describe('full names', () => {
  for (const [full, first, last] of [
    ['Ada Lovelace', 'Ada', 'Lovelace'],
    ['Lovelace, Ada', 'Ada', 'Lovelace'],
    ['Dr. Ada King Lovelace', 'Dr. Ada King', 'Lovelace'],
    ['Dr. Anna Maria van der Berg', 'Dr. Anna Maria', 'van der Berg'],
    ['Prof. Dr. Sammy Davis, Jr.', 'Prof. Dr. Sammy', 'Davis Jr.'],
    ['Herr von Braun', 'Herr', 'von Braun'],
    ['Mrs Lovelace', 'Mrs', 'Lovelace'],
    ['Vincent van Gogh', 'Vincent', 'van Gogh'],
    ['María de la Cruz', 'María', 'de la Cruz'],
    ['Sammy Davis Jr.', 'Sammy', 'Davis Jr.'],
    ['Plato', 'Plato', undefined],
  ] as const)
    it(`splits ${full}`, () => {
      assert.deepEqual(splitName(full), last ? { first_name: first, last_name: last } : { first_name: first })
    })

  it('keeps every word of a name without commas', () => {
    const word = fc.oneof(
      fc.stringMatching(/^[A-Z][a-z]{4,8}$/),
      fc.constantFrom('Dr.', 'Prof', 'Mrs', 'van', 'de', 'Jr.', 'III', 'PhD'),
    )
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
        const { first_name, last_name } = splitName(words.join('  '))
        assert.equal([first_name, last_name].filter(Boolean).join(' '), words.join(' '))
      }),
    )
  })
})
