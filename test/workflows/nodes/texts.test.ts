import { deepEqual, equal, match } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { TEXT } from '../../../workflows/shared/limits.ts'
import { errorOf, outputOf } from '../../support/execute-node.ts'

describe('split_text', () => {
  const split = async (config: Record<string, unknown>) => (await outputOf('split_text', config)).parts

  it('splits at commas, at several separators, and at line ends of all kinds', async () => {
    deepEqual(await outputOf('split_text', { text: ' a, b ,,c ' }), {
      parts: ['a', 'b', 'c'],
      count: 3,
      first: 'a',
      last: 'c',
    })
    deepEqual(await split({ text: 'a;b|c.*d', separator: [';', '|', '.*'] }), ['a', 'b', 'c', 'd'])
    deepEqual(await split({ text: 'a--b-c', separator: ['-', '--'] }), ['a', 'b', 'c'])
    deepEqual(await split({ text: 'one\r\ntwo\nthree\rfour\n', separator: '\n' }), [
      'one',
      'two',
      'three',
      'four',
    ])
    deepEqual(await split({ text: 'a, b,,', trim: false, drop_empty: false }), ['a', ' b', '', ''])
  })

  it('leaves the rest in the last part, and gives nothing for an empty text', async () => {
    deepEqual(await split({ text: 'key: a: b', separator: ':', max_parts: 2 }), ['key', 'a: b'])
    deepEqual(await split({ text: ', ,a,b', max_parts: 1 }), [', ,a,b'])
    deepEqual(await outputOf('split_text', { text: '' }), { parts: [], count: 0, first: null, last: null })
  })

  it('refuses more parts than its limit', async () => {
    const parts = (count: number) => Array(count).fill('a').join()
    equal((await outputOf('split_text', { text: parts(TEXT.parts) })).count, TEXT.parts)
    equal((await errorOf('split_text', { text: parts(TEXT.parts + 1) }))[0], 'too_many_parts')
  })
})

describe('format_phone', () => {
  it('writes a number in each form', async () => {
    const formats = { e164: '+41446681800', international: '+41 44 668 18 00', national: '044 668 18 00' }
    for (const [format, phone] of Object.entries({ ...formats, uri: 'tel:+41446681800' }))
      equal((await outputOf('format_phone', { phone: '044/668 18 00', country: 'CH', format })).phone, phone)
    deepEqual(await outputOf('format_phone', { phone: '+1 (212) 555-0100 ext. 7', country: 'CH' }), {
      phone: '+12125550100',
      valid: true,
      country: 'US',
      calling_code: '1',
      extension: '7',
    })
  })

  it('leaves what is no valid number as it is', async () => {
    for (const phone of ['044 668 18 00', '+41 12', 'call me', '', null])
      deepEqual(await outputOf('format_phone', { phone }), {
        phone,
        valid: false,
        country: null,
        calling_code: null,
        extension: null,
      })
    match((await errorOf('format_phone', { phone: '1', country: 'Schweiz' }))[1], /two-letter country code/)
  })
})

describe('format_date', () => {
  const text = async (config: Record<string, unknown>, now?: Date) =>
    (await outputOf('format_date', config, now ? { now } : {})).text

  it('reads times in all forms', async () => {
    const format = '%Y-%m-%d %H:%M'
    const cases: [Record<string, unknown>, string][] = [
      [{ value: '2026-03-01T09:30:00Z' }, '2026-03-01 09:30'],
      [{ value: '2026-03-01T09:30', timezone: 'Asia/Kolkata' }, '2026-03-01 09:30'],
      [{ value: '2026-03-01T09:30:00Z', timezone: 'Asia/Kolkata' }, '2026-03-01 15:00'],
      [{ value: '1.3.2026', read_as: 'dmy' }, '2026-03-01 00:00'],
      [{ value: '3/1/2026', read_as: 'mdy' }, '2026-03-01 00:00'],
      [{ value: 1772357400, read_as: 'unix' }, '2026-03-01 09:30'],
      [{ value: '1772357400000', read_as: 'unix_ms' }, '2026-03-01 09:30'],
      [{}, '2026-02-03 04:05'],
    ]
    for (const [config, expected] of cases)
      equal(
        await text({ format, ...config }, new Date('2026-02-03T04:05:06Z')),
        expected,
        JSON.stringify(config),
      )
  })

  it('adds by the calendar of the time zone, and hours by the clock', async () => {
    const zone = { timezone: 'Europe/Zurich', format: '%Y-%m-%d %H:%M' }
    const cases: [string, Record<string, number>, string][] = [
      ['2026-01-31', { months: 1 }, '2026-02-28 00:00'],
      ['2024-02-29', { years: 1 }, '2025-02-28 00:00'],
      ['2026-03-31', { months: -1, days: 1 }, '2026-03-01 00:00'],
      // The clocks change on 29 March.
      ['2026-03-28T09:00', { days: 1 }, '2026-03-29 09:00'],
      ['2026-03-28T09:00', { hours: 24 }, '2026-03-29 10:00'],
      ['2026-12-31T23:30', { weeks: 1, minutes: 45 }, '2027-01-08 00:15'],
    ]
    for (const [value, add, expected] of cases) equal(await text({ value, add, ...zone }), expected, value)
  })

  it('gives the day, the time and the weekday in the time zone', async () => {
    deepEqual(
      await outputOf('format_date', {
        value: '2026-03-01T23:30:00Z',
        timezone: 'Europe/Zurich',
        format: '%A',
      }),
      {
        text: 'Monday',
        iso: '2026-03-01T23:30:00.000Z',
        date: '2026-03-02',
        time: '00:30',
        weekday: 1,
        unix: 1772407800,
      },
    )
    equal((await outputOf('format_date', { value: '2026-03-01' })).weekday, 7)
  })

  it('says what is no time, and how to write it', async () => {
    for (const value of ['01.03.2026', 'soon', '', '2026-02-30', '0000-01-01', '99999-01-01'])
      match(
        (await errorOf('format_date', { value })).join(),
        /^invalid_date,".*" is not a time: write 2026-03-01/,
      )
    match((await errorOf('format_date', { value: '31.02.2026', read_as: 'dmy' })).join(), /read as dmy/)
    match(
      (await errorOf('format_date', { value: '2026-01-01', add: { years: 1000, months: 99_999 } })).join(),
      /months/,
    )
    match(
      (await errorOf('format_date', { value: '9000-01-01', add: { years: 1000 } })).join(),
      /years 1 to 9999/,
    )
    match((await errorOf('format_date', { format: '%5000d' })).join(), /may pad to 100/)
  })

  it('refuses a format without directives, which would be the text of every date', async () => {
    const [code, message] = await errorOf('format_date', { format: 'DD.MM.YYYY' })
    deepEqual(
      [code, message],
      [
        'invalid_config',
        'format is wrong: the format "DD.MM.YYYY" has no directive such as %Y, %m, %d, %H or %M: %d.%m.%Y',
      ],
    )
    match((await errorOf('format_date', { format: '100%' })).join(), /which does not exist/)
    equal(await text({ value: '2026-03-01', format: '%-d. %^b' }), '1. MAR')
  })

  it('refuses a directive that does not exist, which would be a text of every date', async () => {
    for (const format of ['%Y-%Q', '%K', '%d %', '%-f'])
      match(
        (await errorOf('format_date', { format })).join(),
        /^invalid_config,format is wrong: .*%.*does not exist/,
      )
    equal(await text({ value: '2026-03-01', format: '%d%% %h %3N' }), '01% Mar 000')
    equal(
      await text({ value: '2027-01-01', format: '%G-W%V %F %T %R' }),
      '2026-W53 2027-01-01 00:00:00 00:00',
    )
    for (const format of ['%d.%M.%Y', '%H:%m'])
      match((await errorOf('format_date', { format })).join(), /is the m/)
  })
})

describe('parse_json', () => {
  it('reads JSON, also what language models write around it, and passes on what is read already', async () => {
    const data = { a: [1, 'x'], b: null }
    const json = JSON.stringify(data)
    for (const text of [json, `\uFEFF ${json}\n`, `\`\`\`json\n${json}\n\`\`\``, data])
      deepEqual(await outputOf('parse_json', { text }), { data })
    deepEqual(await outputOf('parse_json', { text: '"x"' }), { data: 'x' })
    deepEqual(await outputOf('parse_json', { text: '{"__proto__": 1}' }), {
      data: JSON.parse('{"__proto__": 1}'),
    })
  })

  it('says where the first error is', async () => {
    for (const [text, expected] of [
      ['{"a": 1,\n "b": }', /value expected at line 2, column 7, near "}"/],
      ['{a: 1}', /line 1, column 2, near "a: 1}"/],
      ['[1, 2,]', /line 1, column 7/],
      ['[1, 2', /line 1, column 6/],
      ['// x\n1', /line 1, column 1/],
      [' ', /is empty/],
    ] as const) {
      const [code, message] = await errorOf('parse_json', { text })
      equal(code, 'invalid_json')
      match(message, expected, text.slice(0, 20))
    }
  })

  it('says that a text is nested too deeply, whether it is JSON or not', async () => {
    for (const text of ['['.repeat(100_000), '['.repeat(500) + ']'.repeat(500)])
      match(
        (await errorOf('parse_json', { text })).join(),
        /^output_too_deep,The text has more than 200 lists/,
      )
    const brackets = ['"['.repeat(1) + '['.repeat(500), '\\"', '[]'.repeat(300)].join('')
    deepEqual(await outputOf('parse_json', { text: JSON.stringify([brackets]) }), { data: [brackets] })
  })

  it('keeps as a text what a JSON number would round', async () => {
    const text =
      '{"id": 12345678901234567890, "low": -9007199254740993, "n": [9007199254740991, 1.5, 1e3], "far": 1e400}'
    deepEqual(await outputOf('parse_json', { text: `${text}` }), {
      data: {
        id: '12345678901234567890',
        low: '-9007199254740993',
        n: [9007199254740991, 1.5, 1000],
        far: '1e400',
      },
    })
    deepEqual(await outputOf('parse_json', { text: '{"12345678901234567890": "12345678901234567890"}' }), {
      data: { '12345678901234567890': '12345678901234567890' },
    })
  })
})

describe('parse_csv', () => {
  const rows = async (config: Record<string, unknown>) => (await outputOf('parse_csv', config)).rows

  it('reads rows by their header, with the delimiter of the text or a given one', async () => {
    const ada = [{ Name: 'Ada', Mail: 'a@b.ch' }]
    for (const [delimiter, text] of [
      [',', 'Name,Mail\nAda,a@b.ch\n'],
      [';', '\uFEFFName;Mail\r\n\r\nAda;a@b.ch'],
      ['\t', 'Name\tMail\rAda\ta@b.ch'],
    ] as const) {
      deepEqual(await rows({ text }), ada)
      deepEqual(await rows({ text, delimiter }), ada)
    }
    deepEqual(await rows({ text: 'sep=|\nName|Mail\nAda|a@b.ch' }), ada)
    deepEqual(await rows({ text: '1,2\n3', header: false }), [['1', '2'], ['3']])
    deepEqual(await rows({ text: '"a,""b""","c\nd"\n', header: false }), [['a,"b"', 'c\nd']])
  })

  it('gives each column one name, and fills short rows', async () => {
    deepEqual(await outputOf('parse_csv', { text: 'Email,,Email,__proto__\nx' }), {
      columns: ['Email', 'column_2', 'Email_2', '__proto__'],
      rows: [JSON.parse('{"Email": "x", "column_2": "", "Email_2": "", "__proto__": ""}')],
      count: 1,
    })
    deepEqual(await outputOf('parse_csv', { text: '' }), { columns: [], rows: [], count: 0 })
  })

  it('names the line that cannot be read', async () => {
    match(
      (await errorOf('parse_csv', { text: 'a,b\n1,2\n"3,4' })).join(),
      /invalid_csv,the row on line 3 has an unclosed/,
    )
    match((await errorOf('parse_csv', { text: 'a,b\n1,2,3' })).join(), /line 2 has 3 cells and the header 2/)
    equal((await errorOf('parse_csv', { text: 'a\n'.repeat(TEXT.parts + 2) }))[0], 'too_many_rows')
  })

  it('lets other work have its turn while it reads a large text', async () => {
    let turns = 0
    const other = setInterval(() => turns++, 1)
    const text = `a,b,c\n${'1,2,3\n'.repeat(9_999)}`
    equal((await outputOf('parse_csv', { text })).count, 9_999)
    clearInterval(other)
    equal(turns > 3, true, `${turns} turns`)
  })
})

describe('hash', () => {
  const hash = async (config: Record<string, unknown>) => (await outputOf('hash', config)).hash

  it('computes what other programs compute', async () => {
    for (const algorithm of ['sha256', 'sha512', 'sha1', 'md5'])
      for (const encoding of ['hex', 'base64', 'base64url'] as const)
        equal(
          await hash({ value: 'Zürich', algorithm, encoding }),
          createHash(algorithm).update('Zürich', 'utf8').digest(encoding),
        )
    equal(await hash({ value: '' }), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  })

  it('is the same for equal mappings, whatever the order of their keys', async () => {
    equal(
      await hash({ value: { a: 1, b: { d: 1, c: 2 } } }),
      await hash({ value: { b: { c: 2, d: 1 }, a: 1 } }),
    )
    equal(await hash({ value: [1, 2] }), await hash({ value: '[1,2]' }))
    equal(await hash({ value: 5 }), await hash({ value: '5' }))
  })
})

describe('render_text', () => {
  const scope = {
    inputs: { deals: [{ name: 'A & B', amount: 1 }, { name: null }], none: [] },
    org: { name: 'Acme' },
  }
  const render = async (config: Record<string, unknown>, more: Record<string, unknown> = {}) =>
    outputOf('render_text', config, { scope: { ...scope, ...more } })
  const items = '{{ inputs.deals }}'

  it('writes a text for each item', async () => {
    const text = '{{ index }}: {{ item.name | escape }} {{ org.name }}'
    deepEqual(await render({ items, text }), { text: '0: A &amp; B Acme\n1:  Acme', count: 2 })
    deepEqual(
      await render({
        items,
        text: '<li>{{ item.name }}</li>',
        separator: '',
        before: '<ul>',
        after: '</ul>',
      }),
      {
        text: '<ul><li>A & B</li><li></li></ul>',
        count: 2,
      },
    )
    deepEqual(
      await render({ items: '{{ inputs.none }}', text, before: 'x', empty: 'Nothing at {{ org.name }}' }),
      {
        text: 'Nothing at Acme',
        count: 0,
      },
    )
  })

  it('writes a text once without items, in a loop with the item of the loop', async () => {
    deepEqual(await render({ text: 'Hello {{ org.name }}' }), { text: 'Hello Acme', count: 1 })
    deepEqual(
      await render({ text: '{{ item.id }}' }, { item: { id: 7 } }).catch(({ code }) => code),
      'invalid_config',
    )
    deepEqual(await render({ text: 'No. {{ item.id }}' }, { item: { id: 7 } }), { text: 'No. 7', count: 1 })
  })

  it('never renders what an item says', async () => {
    const name = '{{ inputs.deals }}'
    deepEqual(
      (await render({ items: '{{ nodes }}', text: '{{ item.name }}' }, { nodes: [{ name }] })).text,
      name,
    )
  })

  it('fails with the placeholder that has no value', async () => {
    const [code, message] = await errorOf('render_text', { items: [{}], text: '{{ item.name }}' })
    equal(code, 'placeholder_error')
    match(message, /\{\{ item.name \}\}: undefined variable/)
  })

  it('writes 5,000 items, and refuses what all together would take too long', async () => {
    const many = Array.from({ length: 5_000 }, (_, id) => ({ id, name: `Deal ${id}` }))
    equal((await render({ items: many, text: '- {{ item.name }} ({{ item.id }})' })).count, 5_000)
    const costly = { items: many, text: "{{ item.name | replace: 'e', 'x' | append: inputs.long }}" }
    const [code, message] = await errorOf('render_text', costly, {
      scope: { inputs: { long: 'x'.repeat(1_000) } },
    })
    equal(code, 'placeholder_error')
    match(message, /too expensive|too large/)
  })
})
