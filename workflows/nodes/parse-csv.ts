import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { DELIMITERS, findDelimiter } from '../shared/csv/delimiter.ts'
import { CsvError, readRows, START } from '../shared/csv/rows.ts'
import { CSV, TEXT } from '../shared/limits.ts'
import { defineNode } from './define.ts'

export const parseCsv = defineNode({
  type: 'parse_csv',
  engine: 4,
  category: 'data',
  title: 'Parse CSV',
  alsoCalled: ['csv', 'csv_parse', 'read_csv', 'from_csv', 'csv_to_json', 'spreadsheet'],
  description:
    'Reads a CSV text into a list of rows. With a header each row is a mapping from column to text, otherwise a list of texts. All cells are texts. To write many records, use an import instead.',
  effect: 'pure',
  config: z.strictObject({
    text: z
      .string()
      .max(TEXT.characters)
      .describe('The CSV text. Line ends and quotes of all kinds are read.'),
    delimiter: z
      .enum(DELIMITERS)
      .optional()
      .describe('The character between cells; a tab is `"\\t"`. Default: detected.'),
    header: z
      .boolean()
      .default(true)
      .describe(
        'Whether the first row has the names of the columns. A column without a name is `column_2`; a name that comes again is `Email_2`.',
      ),
  }),
  output: z.strictObject({
    rows: z
      .array(z.union([z.record(z.string(), z.string()), z.array(z.string())]))
      .describe(`The rows in order, at most ${TEXT.parts}; a cell that a row lacks is an empty text.`),
    columns: z.array(z.string()).describe('The names of the columns; empty without a header.'),
    count: z.int().describe('The number of rows.'),
  }),
  handles: () => [{ name: 'success', description: 'The text is read; there may be no rows.' }],
  outputOnly: true,
  example: {
    config: { text: '{{ inputs.list }}' },
    inputs: {
      inputs: { list: 'Name;Email\r\nAda;ada@example.com\r\n"Bob ""B""";' },
    },
    output: {
      rows: [
        { Name: 'Ada', Email: 'ada@example.com' },
        { Name: 'Bob "B"', Email: '' },
      ],
      columns: ['Name', 'Email'],
      count: 2,
    },
  },
  async run({ text, delimiter, header }) {
    const bytes = Buffer.from(text.replace(/^\uFEFF/, ''))
    const found = findDelimiter(bytes)
    const start = found.skip > 0 ? { byte: found.skip, line: 2 } : START
    const rows: (string[] | Record<string, string>)[] = []
    let columns: string[] | undefined
    try {
      for await (const { cells, line } of readRows(
        [bytes.subarray(found.skip)] as unknown as AsyncIterable<Buffer>,
        delimiter ?? found.delimiter,
        start,
      )) {
        if (header && !columns) columns = columnsOf(cells)
        else rows.push(columns ? rowOf(columns, cells, line) : cells)
        if (rows.length > TEXT.parts)
          throw new NodeError('too_many_rows', `The text has more than ${TEXT.parts} rows: use an import.`)
      }
    } catch (error) {
      if (!(error instanceof CsvError)) throw error
      throw new NodeError('invalid_csv', [error.message, error.hint ?? []].flat().join(': '))
    }
    return { output: { rows, columns: columns ?? [], count: rows.length } }
  },
})

/** The unique names of the columns. Throws NodeError `invalid_csv`. */
function columnsOf(cells: string[]): string[] {
  if (cells.length > CSV.columns)
    throw new NodeError('invalid_csv', `The header has more than ${CSV.columns} columns.`)
  const taken = new Set<string>()
  return cells.map((cell, index) => {
    const name = cell.trim() || `column_${index + 1}`
    let unique = name
    for (let count = 2; taken.has(unique); count++) unique = `${name}_${count}`
    taken.add(unique)
    return unique
  })
}

/** Throws NodeError `invalid_csv` for a row that has more cells than the header. */
function rowOf(columns: string[], cells: string[], line: number): Record<string, string> {
  if (cells.slice(columns.length).some((cell) => cell.trim() !== ''))
    throw new NodeError(
      'invalid_csv',
      `The row on line ${line} has ${cells.length} cells and the header ${columns.length}: quote a cell that contains the delimiter, or set \`delimiter\`.`,
    )
  // fromEntries defines keys; an assignment would call the setter of `__proto__`.
  return Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? '']))
}
