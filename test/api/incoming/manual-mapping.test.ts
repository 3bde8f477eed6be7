import assert from 'node:assert/strict'
import fc from 'fast-check'
import { leaves } from '../../../db/model/incoming/mapping/leaves.ts'
import { mapManually } from '../../../db/model/incoming/mapping/manual.ts'
import { valueAt } from '../../../db/model/incoming/mapping/path.ts'
import { transformed } from '../../../db/model/incoming/mapping/transforms.ts'
import type { MappingRule, Transform } from '../../../db/model/incoming/types.ts'
import { isUnsupportedPath } from '../../../workflows/shared/paths.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

const rule = (from: string, to: string, more: Partial<MappingRule> = {}): MappingRule => ({
  from,
  to,
  transforms: [],
  ...more,
})
const fieldsOf = (payload: unknown, ...rules: MappingRule[]) => mapManually(payload, rules, 'contacts').fields

describe('manual mapping', () => {
  it('maps paths to fields, addresses, custom fields, tags and the company', () => {
    const payload = {
      person: { names: ['Ada'], optedOut: 'yes' },
      town: 'Zurich',
      score: 7,
      labels: ['a', 'b'],
      firm: 'Engines',
    }
    const rules = [
      rule('person.names[0]', 'first_name'),
      rule('person.optedOut', 'do_not_contact'),
      rule('town', 'address.city'),
      rule('score', 'custom_fields.score'),
      rule('labels', 'tags'),
      rule('firm', 'company_name'),
      rule('nothing', 'email'),
    ]
    assert.deepEqual(mapManually(payload, rules, 'contacts'), {
      fields: {
        first_name: 'Ada',
        do_not_contact: true,
        address: { city: 'Zurich' },
        custom_fields: { score: 7 },
        tags: ['a', 'b'],
      },
      company_name: 'Engines',
      sources: {
        first_name: 'person.names[0]',
        do_not_contact: 'person.optedOut',
        'address.city': 'town',
        'custom_fields.score': 'score',
        tags: 'labels',
        company_name: 'firm',
      },
    })
  })

  it('reads the text of an XML element at its path, and attributes below it', () => {
    const payload = {
      mail: { kind: 'w', '#text': 'ada@example.com' },
      tag: [{ id: '1', '#text': 'a' }, 'b'],
    }
    const rules = [
      rule('mail', 'email', { when: { path: 'mail.kind', is: 'equal', to: 'w' } }),
      rule('mail.kind', 'custom_fields.kind'),
      rule('mail', 'custom_fields.mail'),
      rule('tag', 'tags'),
      rule('tag[0]', 'first_name'),
    ]
    assert.deepEqual(fieldsOf(payload, ...rules), {
      email: 'ada@example.com',
      custom_fields: { kind: 'w', mail: 'ada@example.com' },
      tags: ['a', 'b'],
      first_name: 'a',
    })
  })

  it('reads the simple form of JSONPath', () => {
    const payload = { a: { email: 'ada@example.com', 'b c': ['x', 'Ada'] }, $: 'dollar' }
    const rules = [
      rule('$.a.email', 'email'),
      rule("$.a['b c'][1]", 'first_name'),
      rule('$["a"].b', 'last_name', { default: 'none' }),
    ]
    assert.deepEqual(fieldsOf(payload, ...rules), {
      email: 'ada@example.com',
      first_name: 'Ada',
      last_name: 'none',
    })
  })

  it('reads members with dots in their names, as Gravity Forms has them', () => {
    const payload = { '1.3': 'Ada', form: { '1.6': 'Lovelace', 'a[0]': 'x', "it's": 'y' } }
    const rules = [rule('["1.3"]', 'first_name'), rule('form["1.6"]', 'last_name')]
    assert.deepEqual(fieldsOf(payload, ...rules), { first_name: 'Ada', last_name: 'Lovelace' })
    assert.deepEqual(fieldsOf(payload, rule('1.3', 'first_name')), { first_name: 'Ada' })
    const odd = [rule("form['a[0]']", 'first_name'), rule('form["it\'s"]', 'last_name')]
    assert.deepEqual(fieldsOf(payload, ...odd), { first_name: 'x', last_name: 'y' })
  })

  it('reads each value of a payload by the path that the log shows', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (payload) => {
        for (const { path, value, key } of leaves(payload))
          if (!/["].*[']|['].*["]/.test(path) && key !== '')
            assert.equal(String(valueAt(payload, path)).trim(), String(value), path)
      }),
    )
  })

  it('knows paths that name no single value', () => {
    const single = [
      'a',
      'a.b[0]',
      '$.a',
      '$[0].a',
      'Your e-mail',
      'a["1.3"].b',
      "['a b']",
      'f[email][value]',
      '1.3',
    ]
    const others = [
      '',
      '$',
      'a[*].b',
      '$..a',
      'a[1:2]',
      'a[?(@.x)]',
      'a[-1]',
      'a[',
      'a.',
      '.a',
      'a]',
      'a["b]',
      'a[0]b',
      '$.*',
    ]
    assert.deepEqual(single.filter(isUnsupportedPath), [])
    assert.deepEqual(
      others.filter((path) => !isUnsupportedPath(path)),
      [],
    )
  })

  it('says that the rules read only a part of a list', () => {
    const mapped = mapManually(
      { items: [{ email: 'a@example.com' }, { email: 'b@example.com' }] },
      [rule('items[0].email', 'email')],
      'contacts',
    )
    assert.deepEqual(mapped.warnings, ['items has 2 records: the rules read 1'])
  })

  it('uses the default if a value is missing or empty', () => {
    const source = rule('source', 'lead_source', { default: 'form' })
    assert.deepEqual(fieldsOf({}, source), { lead_source: 'form' })
    assert.deepEqual(fieldsOf({ source: ' ' }, source), { lead_source: 'form' })
    assert.deepEqual(fieldsOf({ source: 'ad' }, source), { lead_source: 'ad' })
  })

  it('skips values that match a pattern, in linear time', () => {
    const email = rule('email', 'email', { skip_if: '^(test|noreply)@' })
    assert.deepEqual(fieldsOf({ email: 'test@example.com' }, email), {})
    assert.deepEqual(fieldsOf({ email: 'ada@example.com' }, email), { email: 'ada@example.com' })
    // An engine that backtracks would not end.
    fieldsOf({ email: `${'a'.repeat(50_000)}!` }, rule('email', 'email', { skip_if: '^(a+)+$' }))
  })

  it('applies a rule only if its condition holds', () => {
    const mapped = (when: MappingRule['when']) =>
      Object.keys(fieldsOf({ email: 'a@example.com', kind: 'lead' }, rule('email', 'email', { when }))).length
    assert.equal(mapped({ path: 'kind', is: 'equal', to: 'lead' }), 1)
    assert.equal(mapped({ path: 'kind', is: 'not_equal', to: 'lead' }), 0)
    assert.equal(mapped({ path: 'kind', is: 'matching', to: '^le' }), 1)
    assert.equal(mapped({ path: 'kind', is: 'present' }), 1)
    assert.equal(mapped({ path: 'kind', is: 'absent' }), 0)
  })

  const CASES: [string, Transform, string][] = [
    ['Ada', { type: 'uppercase' }, 'ADA'],
    ['Ada', { type: 'lowercase' }, 'ada'],
    [' Ada ', { type: 'trim' }, 'Ada'],
    ['Zoë! #1 <b>', { type: 'remove_special' }, 'Zoë 1 b'],
    ['044 668 18 00', { type: 'format_phone', country: 'CH' }, '+41446681800'],
    ['044 668 18 00 ext 5', { type: 'format_phone', country: 'CH' }, '044 668 18 00 ext 5'],
    ['none', { type: 'format_phone', country: 'CH' }, 'none'],
    ['31.12.2026', { type: 'parse_date', format: 'dmy' }, '2026-12-31'],
    ['12/31/2026', { type: 'parse_date', format: 'mdy' }, '2026-12-31'],
    ['2026-1-2', { type: 'parse_date', format: 'ymd' }, '2026-01-02'],
    ['31.2.2026', { type: 'parse_date', format: 'dmy' }, '31.2.2026'],
    ['1767225600', { type: 'parse_date', format: 'unix' }, '2026-01-01T00:00:00.000Z'],
    ['soon', { type: 'parse_date', format: 'unix' }, 'soon'],
    ['10.05', { type: 'convert_currency', rate: '1.1' }, '11.06'],
    ['-10.05', { type: 'convert_currency', rate: '1.1' }, '-11.06'],
    ['0.1', { type: 'convert_currency', rate: '3' }, '0.30'],
    ['much', { type: 'convert_currency', rate: '3' }, 'much'],
    ['Ada Lovelace', { type: 'split_name', part: 'last_name' }, 'Lovelace'],
    ['Ada', { type: 'split_name', part: 'last_name' }, ''],
    ['Ada', { type: 'combine', with: ['last', 'none'], separator: ' ' }, 'Ada Lovelace'],
    ['a-b-c', { type: 'replace', pattern: '-', by: '$1' }, 'a$1b$1c'],
  ]
  for (const [text, transform, expected] of CASES)
    it(`${JSON.stringify(transform)} makes ${JSON.stringify(expected)} of ${JSON.stringify(text)}`, () => {
      assert.equal(transformed(text, transform, { last: 'Lovelace' }), expected)
    })

  it('converts money as exactly as integer arithmetic', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 0, max: 1e6 }), (cents, rate) => {
        const amount = `${cents < 0 ? '-' : ''}${(Math.abs(cents) / 100).toFixed(2)}`
        const converted = transformed(amount, { type: 'convert_currency', rate: String(rate) }, {})
        assert.equal(BigInt(converted.replace('.', '')), BigInt(cents) * BigInt(rate))
      }),
    )
  })

  it('never throws, for any payload and transforms', () => {
    const path = fc.oneof(
      fc.constantFrom('a', 'a.b', 'a[0]', 'list[0].x', '__proto__.x', '[', '..'),
      fc.string(),
    )
    const transform = fc.constantFrom(...CASES.map(([, one]) => one))
    const to = fc.constantFrom(
      'first_name',
      'email',
      'tags',
      'address.city',
      'custom_fields.x',
      'company_name',
    )
    const rules = fc.array(fc.record({ from: path, to, transforms: fc.array(transform, { maxLength: 4 }) }))
    fc.assert(
      fc.property(fc.object({ key: fc.constantFrom('a', 'b', 'list', 'x') }), rules, (payload, given) => {
        const { fields, sources } = mapManually(payload, given, 'contacts')
        for (const source of Object.keys(sources)) assert.ok(given.some((one) => one.to === source))
        assert.equal(Object.getPrototypeOf(fields), Object.prototype)
      }),
    )
  })
})

describe('a webhook with manual mapping', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const rules = [
    { from: 'who', to: 'first_name', transforms: [{ type: 'split_name', part: 'first_name' }] },
    { from: 'who', to: 'last_name', transforms: [{ type: 'split_name', part: 'last_name' }] },
    { from: 'id', to: 'external_id' },
    { from: 'plan', to: 'custom_fields.plan', transforms: [{ type: 'uppercase' }] },
  ]

  it('writes the mapped fields, and matches by the mapped external_id', async () => {
    const webhook = await test.createWebhook({
      field_mapping: { mode: 'manual', rules },
      deduplication: { action: 'Update', by: 'external_id' },
    })
    const first = await test.send(webhook, {
      id: 17,
      who: 'Ada Lovelace',
      plan: 'gold',
      email: 'no@example.com',
    })
    assert.equal(first.status, 200, JSON.stringify(first.body))
    await test.send(webhook, { id: 17, who: 'Ada King', plan: '' })
    const contact = await test.contact(first.body.record_id)
    assert.deepEqual(
      [contact.first_name, contact.last_name, contact.external_id, contact.email, contact.custom_fields],
      ['Ada', 'King', '17', null, { plan: 'GOLD' }],
    )
  })

  it('refuses unknown fields, invalid patterns and incomplete rules', async () => {
    const refused = async (...given: object[]) => {
      const body = { name: 'x', field_mapping: { mode: 'manual', rules: given } }
      const answer = await test.app('POST', '/webhooks/incoming', body, 422)
      return answer.body.detail.map(({ loc }: { loc: unknown[] }) => loc.slice(3).join('.'))
    }
    assert.deepEqual(await refused({ from: 'a', to: 'first_name' }, { from: 'a', to: 'colour' }), ['1.to'])
    assert.deepEqual(await refused({ from: 'a', to: 'company_id' }), ['0.to'])
    assert.deepEqual(await refused({ from: 'a', to: '__proto__' }), ['0.to'])
    assert.deepEqual(await refused({ from: 'a', to: 'email', skip_if: '(' }), ['0.skip_if'])
    assert.deepEqual(await refused({ from: '$..email', to: 'email' }), ['0.from'])
    assert.deepEqual(await refused({ from: '$.items[*].email', to: 'email' }), ['0.from'])
    assert.equal((await refused()).length, 1)
    const mapping = { mode: 'manual', rules: [{ from: 'a', to: 'emial' }] }
    const { body: wrong } = await test.app(
      'POST',
      '/webhooks/incoming',
      { name: 'x', field_mapping: mapping },
      422,
    )
    assert.deepEqual(
      [wrong.error.message, wrong.detail[0].hint],
      ['field_mapping.rules.0.to: emial is not a mappable field of a contact', 'did you mean email?'],
    )
    const hintOf = async (to: string, target_entity = 'Contact') => {
      const field_mapping = { mode: 'manual', rules: [{ from: 'a', to }] }
      const path = '/webhooks/incoming'
      return (await test.app('POST', path, { name: 'x', target_entity, field_mapping }, 422)).body.detail[0]
        .hint
    }
    assert.deepEqual(
      await Promise.all(
        ['mail_adresse', 'Vorname', 'companyname', 'address.zip', 'full_name'].map((to) => hintOf(to)),
      ),
      [
        'did you mean email?',
        'did you mean first_name?',
        'did you mean company_name?',
        'did you mean address.postal_code?',
        'write two rules, to first_name and last_name, each with the transform split_name',
      ],
    )
    assert.match(await hintOf('xyzxyz'), /^use custom_fields.<name>, or one of first_name/)
    assert.equal(await hintOf('branche', 'Company'), 'did you mean industry?')
    const webhook = await test.createWebhook({ field_mapping: { mode: 'manual', rules } })
    await test.app('PATCH', `/webhooks/incoming/${webhook.id}`, { target_entity: 'Company' }, 422)
    const { body } = await test.app('GET', `/webhooks/incoming/${webhook.id}`)
    assert.equal(body.target_entity, 'Contact')
  })
})
