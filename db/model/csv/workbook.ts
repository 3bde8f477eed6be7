import { Readable } from 'node:stream'
import { ZipFile } from 'yazl'
import { cellText } from './cell-text.ts'
import { type CellType, unescapeFormula } from './read-cell.ts'
import { readRows } from './rows.ts'

/**
 * A workbook (Office Open XML) from CSV, such as the rows of an export, as a stream: whatever its size, the memory holds
 * a piece of it. `types`: of the columns; the cells of numbers are numbers, all others texts, which no spreadsheet
 * executes.
 */
export function workbook(csv: AsyncIterable<Buffer>, types: ReadonlyMap<string, CellType>): Readable {
  const zip = new ZipFile()
  // A fixed time: the same records give the same bytes.
  const options = { mtime: new Date('2000-01-01T00:00:00Z') }
  for (const [path, xml] of Object.entries(PARTS)) zip.addBuffer(Buffer.from(`${HEAD}${xml}`), path, options)
  const sheet = Readable.from(sheetOf(csv, types), { objectMode: false })
  const file = zip.outputStream as Readable
  sheet.on('error', (error) => file.destroy(error))
  file.on('close', () => sheet.destroy())
  zip.addReadStream(sheet, 'xl/worksheets/sheet1.xml', options)
  zip.end()
  return file
}

const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006'
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const TYPES = 'application/vnd.openxmlformats-officedocument.spreadsheetml'

const PARTS = {
  '[Content_Types].xml': `<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${TYPES}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${TYPES}.worksheet+xml"/></Types>`,
  '_rels/.rels': `<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  'xl/workbook.xml': `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets><sheet name="Export" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
}

/** Characters of XML that are written at once. */
const CHUNK = 65_536

async function* sheetOf(
  csv: AsyncIterable<Buffer>,
  types: ReadonlyMap<string, CellType>,
): AsyncGenerator<string> {
  // The first row stays in view.
  let xml = `${HEAD}<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" state="frozen"/></sheetView></sheetViews><sheetData>`
  let isNumber: boolean[] | undefined
  for await (const { cells } of readRows(csv, ',')) {
    xml += `<row>${cells.map((cell, i) => cellOf(cell, isNumber?.[i] === true)).join('')}</row>`
    isNumber ??= cells.map((name) => NUMBERS.has(types.get(name) ?? 'text'))
    if (xml.length < CHUNK) continue
    yield xml
    xml = ''
  }
  yield `${xml}</sheetData></worksheet>`
}

const NUMBERS = new Set<CellType>(['number', 'integer', 'percent', 'decimal', 'money'])

function cellOf(cell: string, isNumber: boolean): string {
  if (cell === '') return '<c/>'
  // More digits than a double has would be rounded by the spreadsheet.
  if (isNumber && /^-?\d{1,15}(\.\d+)?$/.test(cell) && cell.replace(/\D/g, '').length <= 15)
    return `<c><v>${cell}</v></c>`
  const text = cellText(unescapeFormula(cell))
  return `<c t="inlineStr"><is><t xml:space="preserve">${escaped(text)}</t></is></c>`
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('\r', '&#13;')
