import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type CsvRow, readRows } from '../../../../db/model/csv/rows.ts'
import { findDelimiter } from '../../../../workflows/shared/csv/delimiter.ts'

async function* inPieces(text: string, size: number) {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** The rows, and the message of the error that ends them. */
async function read(text: string, size = 1_000): Promise<{ rows: CsvRow[]; error?: string }> {
  const rows: CsvRow[] = []
  try {
    for await (const row of readRows(inPieces(text, size), ',')) rows.push(row)
    return { rows }
  } catch (error) {
    return { rows, error: (error as Error).message }
  }
}

describe('the rows of a file', () => {
  for (const [name, end] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ] as const)
    it(`have the line on which they begin, with ${name} as line end`, async () => {
      const text = ['a,b', '', '"x', 'y",1', '', '', '5" disk,2', 'é,"q""q"'].join(end)
      for (const size of [1, 2, 3, 1_000]) {
        const { rows } = await read(text, size)
        assert.deepEqual(
          rows.map(({ line, cells }) => [line, ...cells]),
          [
            [1, 'a', 'b'],
            [3, `x${end}y`, '1'],
            [7, '5" disk', '2'],
            [8, 'é', 'q"q'],
          ],
        )
      }
    })

  it('precede an error, which has its line', async () => {
    const { rows, error } = await read('a\r\n"b\r\nb"\r\n\r\n"c\r\nd\r\n')
    assert.deepEqual([rows.length, error], [2, 'the row on line 5 has an unclosed quote'])
  })

  it('are not longer than 1 MiB with their delimiters, and have so many cells at most', async () => {
    const commas = await read(`a,b\n${','.repeat(3 * 1024 * 1024)}`, 65_536)
    assert.equal(commas.error, 'the row on line 2 is longer than 1 MiB')
    assert.equal(commas.rows.length, 1)
    const cells = await read(`a,b\n\n${','.repeat(200_000)}\nx,y`, 65_536)
    assert.equal(cells.error, 'the row on line 3 has more than 131072 cells')
    assert.equal(cells.rows.length, 1)
    assert.equal((await read(`a\n"${','.repeat(200_000)}"`, 65_536)).rows.length, 2)
  })

  it('are not longer than 1 MiB; where one is, a quote is only spoken of where there is one', async () => {
    const x = 'x'.repeat(1_100_000)
    for (const [file, line, end] of [
      [`a,b\n${x},y\n`, 2, ''],
      [`a,b\n\r\n"1",${x}\n"y","z\n`, 3, ''],
      [`a,b\n5" disk,${x}\n`, 2, ''],
      [`a,b\n1,"${x}"\n`, 2, ' and has an unclosed quote'],
      [`a,b\n1,2\n"${'3,4\n'.repeat(300_000)}`, 3, ' and has an unclosed quote'],
      [Array.from({ length: 200_000 }, (_, i) => `c${i}`).join(), 1, ''],
    ] as const) {
      const { error } = await read(file, 65_536)
      assert.equal(error, `the row on line ${line} is longer than 1 MiB${end}`)
    }
  })

  it('are the same in pieces of any size', async () => {
    const text = fc.stringMatching(/^[ab",\r\n]{0,30}$/)
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 10 }), async (file, size) =>
        assert.deepEqual(await read(file, size), await read(file)),
      ),
    )
  })
})

describe('the delimiter of a file', () => {
  for (const [file, delimiter] of [
    ['a,b\n1,2\n', ','],
    ['a;b\n"1,5";2\n', ';'],
    ['a\tb, c\n1\t2\n', '\t'],
    ['a|b\n1|2', '|'],
    ['name, first;mail;x\nLovelace, Ada;a@b.c;1\nBob;b@b.c;2\n', ';'],
    ['one\n1\n', ','],
    ['"a;b",c\n"1;2",3\n', ','],
  ] as const)
    it(`${JSON.stringify(file)}: ${JSON.stringify(delimiter)}`, () =>
      assert.deepEqual(findDelimiter(Buffer.from(file)), { delimiter, skip: 0 }))

  it('is taken from a sep= line', () => {
    assert.deepEqual(findDelimiter(Buffer.from('sep=^\r\na,b^c\r\n')), { delimiter: '^', skip: 7 })
  })
})
