import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type ColumnFormat, FormatFinder } from '../../../../db/model/csv/column-format.ts'
import { type Currencies, readMoney } from '../../../../db/model/csv/money-cell.ts'
import { CellProblem, type CellType, readCell, readList } from '../../../../db/model/csv/read-cell.ts'
import { readRows } from '../../../../db/model/csv/rows.ts'
import { csvLines, escapeFormula, writeCell, writeList } from '../../../../db/model/csv/write-cell.ts'

const reads = (type: CellType, cases: Record<string, unknown>, choices: string[] = [], delimiter = ',') => {
  for (const [cell, value] of Object.entries(cases))
    it(`${JSON.stringify(cell)} is ${JSON.stringify(value)}`, () =>
      assert.deepEqual(readCell(cell, type, choices, delimiter), value))
}
const refuses = (type: CellType, ...cells: string[]) => {
  for (const cell of cells)
    it(`${JSON.stringify(cell)} is refused`, () => assert.throws(() => readCell(cell, type), CellProblem))
}

describe('the format of a column', () => {
  const formatOf = (...cells: string[]) => {
    const finder = new FormatFinder()
    for (const cell of cells) finder.see(cell)
    return finder.found()
  }

  it('is decided by all of its values', () => {
    assert.deepEqual(formatOf('1.200', '8.000'), { open: ['decimal'] })
    assert.deepEqual(formatOf('1.200', '12,5'), { decimal: ',' })
    assert.deepEqual(formatOf('1.200', '3.25'), { decimal: '.' })
    assert.deepEqual(formatOf('1.200', '1.200.000 €'), { decimal: ',' })
    assert.deepEqual(formatOf("CHF 8'000.50", '1,200'), { decimal: '.' })
    assert.deepEqual(formatOf('1.200', '12,5', '12.5'), { open: ['decimal'] })
    assert.deepEqual(formatOf('10/11/2024', '10/31/2024'), { date: 'mdy' })
    assert.deepEqual(formatOf('10/11/2024', '31/10/2024 12:00'), { date: 'dmy' })
    assert.deepEqual(formatOf('10/11/2024', '10/10/2024'), { open: ['date'] })
    assert.deepEqual(formatOf('31/10/2024', '10/31/2024', '10/11/2024'), { open: ['date'] })
  })

  it('is not read from text, dates with points, versions or very long cells', () => {
    for (const cell of ['Acme 1.5 GmbH', '31.12.2026', '10.0.0.1', '', 'x,y', `1,5${'0'.repeat(100_000)}`])
      assert.deepEqual(formatOf(cell), {}, cell.slice(0, 20))
  })

  it('reads every number that is written in it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -999_999_999, max: 999_999_999 }),
        fc.constantFrom(',', '.'),
        (cents, decimal) => {
          const group = decimal === ',' ? '.' : ','
          const [, sign, whole, places] = /^(-?)(\d+)(\d\d)$/.exec(
            (cents < 0 ? '-' : '') + String(Math.abs(cents)).padStart(3, '0'),
          )!
          const text = `${sign}${whole!.replace(/\B(?=(\d{3})+$)/g, group)}${decimal}${places}`
          assert.equal(formatOf(text).decimal, decimal, text)
          for (const format of [{}, { decimal } as const])
            assert.equal(readCell(text, 'number', [], ',', format), cents / 100 || 0, text)
        },
      ),
    )
  })

  it('decides what an ambiguous value means, and refuses what does not fit', () => {
    const read = (cell: string, type: CellType, format: ColumnFormat) => readCell(cell, type, [], ',', format)
    assert.deepEqual(
      [read('1.200', 'number', { decimal: ',' }), read('1.200', 'number', { decimal: '.' })],
      [1200, 1.2],
    )
    assert.deepEqual(
      [read('1.200', 'integer', { decimal: ',' }), read('8', 'integer', { decimal: ',' })],
      [1200, 8],
    )
    assert.equal(read('1,234', 'money', { decimal: '.' }), '1234')
    assert.deepEqual(
      [read('10/11/2024', 'date', { date: 'mdy' }), read('10/11/2024', 'date', { date: 'dmy' })],
      ['2024-10-11', '2024-11-10'],
    )
    for (const [cell, type, format] of [
      ['3.5', 'number', { decimal: ',' }],
      ['1,2,3', 'money', { decimal: ',' }],
      ['1.200', 'number', {}],
      ['1,200', 'money', {}],
      ['10/11/2024', 'date', {}],
    ] as const)
      assert.throws(() => read(cell, type, format), CellProblem, cell)
  })
})

describe('an amount', () => {
  const read = (text: string, own = 'EUR', currencies: Currencies = {}) => {
    const { amount, currency } = readMoney(text, currencies, own)
    return [amount.trim(), currency]
  }

  it('names its currency before or after, by sign or code', () => {
    for (const [text, amount, currency] of [
      ['£8,000.00', '8,000.00', 'GBP'],
      ['8.000,00 €', '8.000,00', 'EUR'],
      ["CHF 8'000", "8'000", 'CHF'],
      ['EUR 8.000', '8.000', 'EUR'],
      ['8000.00 CHF', '8000.00', 'CHF'],
      ["Fr. 8'000.50", "8'000.50", 'CHF'],
      ['-12 zł', '-12', 'PLN'],
      ['(US$ 5)', '(5)', 'USD'],
      ['R$ 10', '10', 'BRL'],
      ['usd 5 USD', '5', 'USD'],
      ['1250', '1250', undefined],
      ['-12.50', '-12.50', undefined],
      ['a lot', 'a lot', undefined],
      ['12 eggs', '12 eggs', undefined],
    ] as const)
      assert.deepEqual(
        read(text).map((part) => part?.replace(/\(\s+/, '(')),
        [amount, currency],
        text,
      )
  })

  it('with a sign of several currencies is in the own one, in the one that the import says, or refused', () => {
    assert.deepEqual(read('$8,000.00', 'CAD'), ['8,000.00', 'CAD'])
    assert.deepEqual(read('$8,000.00', 'EUR', { dollar: 'USD' }), ['8,000.00', 'USD'])
    assert.deepEqual(read('100 kr', 'EUR', { krone: 'SEK' }), ['100', 'SEK'])
    for (const text of ['$8,000.00', '¥100', '100 kr', '€ 5 USD'])
      assert.throws(() => read(text), CellProblem, text)
  })

  it('is read in linear time: a square of the length would take minutes', () => {
    for (const text of ['$'.repeat(1_000_000), `${'1'.repeat(1_000_000)}$`, `(${' '.repeat(1_000_000)}1`])
      read(text)
  })
})

describe('a cell', () => {
  describe('of money', () => {
    reads('money', {
      '1250': '1250',
      '1250.5': '1250.5',
      '1,234.56': '1234.56',
      '1.234,56': '1234.56',
      "1'234.50": '1234.50',
      '1 234 567,89': '1234567.89',
      '1,234,567': '1234567',
      '1.234.567': '1234567',
      '12,5': '12.5',
      '0,123': '0.123',
      '0.123': '0.123',
      '1.2340': '1.2340',
      '1234.567': '1234.567',
      '1234,567': '1234.567',
      '$1,250.00': '1250.00',
      '€ 99': '99',
      '-12.50': '-12.50',
      '(12.50)': '-12.50',
      '1,23,456.00': '1,23,456.00',
      'a lot': 'a lot',
    })
    refuses('money', '1,234', '-9,999', '$1,000', '1.234', '(1.250)', '12.500 €')

    it('that is ambiguous is refused with both unambiguous forms', () => {
      const messageOf = (cell: string, delimiter: string) => {
        try {
          return readCell(cell, 'money', [], delimiter)
        } catch (error) {
          return (error as Error).message
        }
      }
      assert.equal(messageOf('1.250', ','), '1.250 is ambiguous: write 1250 or 1.25')
      // If the comma is the decimal separator, a spreadsheet reads 1.25 as a date.
      assert.equal(messageOf('1.250', ';'), '1.250 is ambiguous: write 1250 or 1,25')
      assert.equal(messageOf('€ -1,000', ','), '€ -1,000 is ambiguous: write -1000 or -1.00')
      for (const [mark, delimiter] of [
        ['.', ','],
        [',', ';'],
      ] as const) {
        const message = messageOf('1.234', delimiter)
        assert.equal(message, `1.234 is ambiguous: write 1234 or 1${mark}2340`)
        assert.equal(messageOf(`1${mark}2340`, delimiter), '1.2340')
      }
    })
  })

  describe('of a number', () => {
    reads('number', { '1.234': 1.234, '8.541': 8.541, '1250,5': 1250.5, '1.234.567': 1234567 })
    refuses('number', '1,234')

    describe('in a file with semicolons, as spreadsheets write it if the comma is the decimal separator', () => {
      reads('number', { '0.541': 0.541, '8.5410': 8.541, '1.250,50': 1250.5 }, [], ';')
      it('"1.234" is refused', () => assert.throws(() => readCell('1.234', 'number', [], ';'), CellProblem))
    })
  })

  it('is read in linear time: a square of the length would take minutes', () => {
    const long = '1'.repeat(1_000_000)
    assert.equal(readCell(`${long}x`, 'money'), `${long}x`)
    assert.throws(() => readCell(`${long}x`, 'number'), CellProblem)
  })

  it('may contain the name of an inherited member', () => {
    assert.equal(readCell('constructor', 'choice', ['a']), 'constructor')
    assert.throws(() => readCell('constructor', 'boolean'), CellProblem)
  })

  it('with nested lists is not a list', () => {
    assert.deepEqual(readList('[["a"]]'), ['[["a"]]'])
    assert.equal(readList(`${'['.repeat(100_000)}${']'.repeat(100_000)}`).length, 1)
  })

  describe('of a whole number', () => {
    reads('integer', {
      '12': 12,
      '1,234': 1234,
      '1.234': 1234,
      '12.0': 12,
      '1,234,567': 1234567,
      '12.5': 12.5,
    })
    refuses('integer', 'a dozen', '1,23,4x')
  })

  describe('of percent', () => {
    reads('percent', { '50': 50, '50%': 50, ' 12 % ': 12, '1': 1, '1%': 1, '0': 0, '100.0': 100, '0%': 0 })
    refuses('percent', '0.5', '0,25', '1.0', '12.5%', '0.5%', 'half', '%')
  })

  describe('of true or false', () => {
    reads('boolean', {
      TRUE: true,
      yes: true,
      '1': true,
      x: true,
      Ja: true,
      FALSE: false,
      No: false,
      ' 0 ': false,
    })
    refuses('boolean', 'perhaps', '2')
  })

  describe('of a time', () => {
    reads('datetime', {
      '2026-01-31': '2026-01-31',
      '2026-01-31T09:00:00Z': '2026-01-31T09:00:00Z',
      '2026-01-31T09:00:00+01:00': '2026-01-31T09:00:00+01:00',
      '2026-01-31 9:05': '2026-01-31T09:05:00',
      '2026/1/3': '2026-01-03',
      '31.1.2026': '2026-01-31',
      '3.1.2026 14:30': '2026-01-03T14:30:00',
      '12/31/2026': '2026-12-31',
      '31/12/2026': '2026-12-31',
      '02/02/2026': '2026-02-02',
      '12/31/2026 3:05 PM': '2026-12-31T15:05:00',
      '12/31/2026 12:05 AM': '2026-12-31T00:05:00',
      tomorrow: 'tomorrow',
    })
    refuses('datetime', '01/02/2026', '3-4-2026')
  })

  describe('of a date', () => {
    reads('date', {
      '2026-01-31 00:00': '2026-01-31',
      '2026-01-31T00:00:00.000Z': '2026-01-31',
      '31.1.2026': '2026-01-31',
      '2025-12-31 10:00': '2025-12-31',
      '12/31/2025 11:59 PM': '2025-12-31',
      '2025-12-31T23:30:00+01:00': '2025-12-31',
      '2025-12-31 99:99': '2025-12-31 99:99',
      soon: 'soon',
    })
    refuses('date', '01/02/2026 10:00')
  })

  describe('of a choice', () => {
    reads('choice', { 'In progress': 'in_progress', NEW: 'new', other: 'other' }, ['new', 'in_progress'])
    reads('choice', { 'Marketing Qualified Lead': 'mql', closedwon: 'won' }, ['mql', 'won'])
    reads('choices', { 'red;Blue': ['red', 'blue'], 'red, blue': ['red', 'blue'] }, ['red', 'blue'])
  })

  it('of tags is split at semicolons, or else at commas', () => {
    assert.deepEqual(readList('vip; a,b ;'), ['vip', 'a,b'])
    assert.deepEqual(readList('vip, b'), ['vip', 'b'])
  })
})

describe('an exported cell', () => {
  it('cannot be a formula', () => {
    for (const text of ['=1+1', '+1-2', '-2+3', '@SUM(A1)', '\t=1', '\r=1', '=HYPERLINK("x")', "'=1", '＝1'])
      assert.equal(escapeFormula(text), `'${text}`)
    for (const text of ['+41446681800', '-12.50', 'a=b', "'quoted'", '1+1'])
      assert.equal(escapeFormula(text), text)
  })

  const anyText = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.stringMatching(/^['=+\-@\t\r\n"[\];,a1]{1,6}$/),
    fc.array(fc.string()).map((list) => JSON.stringify(list)),
    fc.json(),
  )
  const text = anyText.filter((one) => one.trim() !== '' && !/[\0\p{Surrogate}]/u.test(one))

  it('of money is unambiguous', () => {
    for (const [amount, cell] of [
      ['1.234', '1.2340'],
      ['-999.125', '-999.1250'],
      ['1250.00', '1250.00'],
      ['0.123', '0.123'],
      ['1234.567', '1234.567'],
    ] as const) {
      assert.equal(writeCell(amount, 'money'), cell)
      assert.equal(Number(readCell(cell, 'money')), Number(amount))
    }
  })

  it('is read back as the same value', () => {
    fc.assert(
      fc.property(text, (value) => {
        assert.equal(readCell(writeCell(value, 'text'), 'text'), value)
        assert.equal(readCell(writeCell(value, 'any'), 'any'), value)
        assert.equal(readCell(writeCell(value, 'json'), 'json'), value)
      }),
      { numRuns: 500 },
    )
    const tag = text.map((one) => one.trim())
    fc.assert(
      fc.property(fc.array(tag, { minLength: 1 }), (tags) =>
        assert.deepEqual(readList(writeList(tags)), tags),
      ),
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(text, fc.integer(), fc.boolean()), { minLength: 1 }), (list) =>
        assert.deepEqual(readCell(writeCell(list, 'any'), 'any'), list),
      ),
    )
    fc.assert(
      fc.property(
        fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value))),
        (value) => {
          if (value !== null) assert.deepEqual(readCell(writeCell(value, 'json'), 'json'), value)
        },
      ),
    )
  })

  it('is read back from a file, from any row and in pieces of any size', async () => {
    const files = fc.tuple(
      fc.array(fc.tuple(text, fc.oneof(text, fc.constant('')), text), { minLength: 1, maxLength: 8 }),
      fc.constantFrom(',', ';', '\t', '|'),
      fc.integer({ min: 1, max: 40 }),
    )
    await fc.assert(
      fc.asyncProperty(files, async ([cells, delimiter, size]) => {
        const file = Buffer.from(csvLines(cells, delimiter))
        const rows = await all(readRows(inPieces(file, size), delimiter))
        assert.deepEqual(
          rows.map((row) => row.cells),
          cells,
        )
        assert.equal(rows.at(-1)!.end.byte, file.length)
        const { end } = rows[0]!
        const rest = await all(readRows(inPieces(file.subarray(end.byte), size), delimiter, end))
        assert.deepEqual(rest, rows.slice(1))
      }),
    )
  })
})

async function* inPieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
