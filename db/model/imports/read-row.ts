import { CellProblem, readCell, readList, unescapeFormula } from '../csv/read-cell.ts'
import { firstOfEachLoc, type Issue } from '../errors.ts'
import type { RecordInput } from '../records/schemas.ts'
import { splitName } from '../records/split-name.ts'
import { type Mapping, type Target, type Targets, targetOf } from './targets.ts'

/** An issue of a row, or of one of its cells. */
export interface RowIssue {
  column: string | null
  message: string
}

/** A column of the file with its target. */
export interface Column {
  name: string
  index: number
  target: Target
}

/** The fields of a row before validation. Blank cells are omitted. */
export interface RowFields {
  fields: RecordInput
  companyName?: string
  issues: RowIssue[]
}

export function columnsOf(header: string[], mapping: Mapping, targets: Targets): Column[] {
  return header.flatMap((name, index) => {
    const target = mapping[name] ? targetOf(targets, mapping[name]) : undefined
    return target ? [{ name, index, target }] : []
  })
}

/** The settings for reading the rows of a file. */
export interface Reading {
  columns: Column[]
  /** The number of columns of the header. */
  width: number
  delimiter: string
}

export function readRow({ columns, width, delimiter }: Reading, cells: string[]): RowFields {
  const row: RowFields = { fields: {}, issues: [] }
  if (isTooWide(cells, width))
    row.issues.push({
      column: null,
      message: `the row has ${cells.length} cells and the header ${width}: a cell that contains the delimiter must be quoted`,
    })
  for (const { name, index, target } of columns) {
    const cell = cells[index]
    if (cell === undefined || !isFilled(cell)) continue
    try {
      put(row, target, cell, delimiter)
    } catch (error) {
      if (!(error instanceof CellProblem)) throw error
      row.issues.push({ column: name, message: error.message })
    }
  }
  return row
}

/** Whether a row has cells beyond the header: its cells are probably in the wrong columns. */
export const isTooWide = (cells: string[], width: number): boolean => cells.slice(width).some(isFilled)

export const isFilled = (cell: string): boolean => cell.trim() !== ''

function put(row: RowFields, { name, type, choices }: Target, cell: string, delimiter: string): void {
  const { fields } = row
  if (type === 'tags') fields.tags = readList(cell)
  else if (type === 'company_name') row.companyName = unescapeFormula(cell).trim()
  else if (type === 'full_name') row.fields = { ...splitName(unescapeFormula(cell)), ...fields }
  else {
    const value = readCell(cell, type, choices, delimiter)
    const [outer, inner] = name.split('.') as [string, string | undefined]
    if (inner === undefined) fields[outer] = value
    else {
      // Modified in place: copying it for each of a thousand columns would take quadratic time.
      fields[outer] ??= {}
      const members = fields[outer] as Record<string, unknown>
      members[inner] = value
    }
  }
}

/** Converts issues of a record to issues of the row: the column replaces the field. */
export function rowIssues(columns: Column[], issues: Pick<Issue, 'loc' | 'msg'>[]): RowIssue[] {
  const byTarget = new Map<string, Column>()
  for (const column of columns)
    if (!byTarget.has(column.target.name)) byTarget.set(column.target.name, column)
  return firstOfEachLoc(issues).map(({ loc, msg }) => {
    const path = (loc[0] === 'body' ? loc.slice(1) : loc).map(String)
    const column = byTarget.get(path.slice(0, 2).join('.')) ?? byTarget.get(path[0] ?? '')
    const field = path.join('.')
    return { column: column?.name ?? null, message: column ? msg : field ? `${field}: ${msg}` : msg }
  })
}
