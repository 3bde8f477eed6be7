import type { ColumnFormat } from '../csv/column-format.ts'
import { WRONG_BYTE } from '../csv/encoding.ts'
import { type Currencies, readMoney } from '../csv/money-cell.ts'
import {
  CellProblem,
  readBoolean,
  readCell,
  readChoice,
  readList,
  unescapeFormula,
} from '../csv/read-cell.ts'
import { firstOfEachLoc, type Issue } from '../errors.ts'
import { readConsent } from '../records/opt-out.ts'
import type { RecordInput } from '../records/schemas.ts'
import { splitName } from '../records/split-name.ts'
import { inZone, toE164 } from '../records/values.ts'
import { closeTimes, fieldsOfCloseTime, type GivenCloseTime } from './close-time.ts'
import { type GivenOutcome, readOutcome, settleOutcome } from './outcome.ts'
import { readEmails, readPhones } from './several.ts'
import { type Consent, type Mapping, type Several, type Target, type Targets, targetOf } from './targets.ts'
import { isLabel, itemsOf, type NamedUser, stageMissing, userNamed } from './values.ts'

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
  format?: ColumnFormat | undefined
}

/** The fields of a row before validation. Blank cells are omitted. */
export interface RowFields {
  fields: RecordInput
  companyName?: string
  /** The currency that the amount names. */
  named?: { column: string; currency: string }
  /** A column says that the person must not be contacted. */
  optedOut?: true
  closeTimes?: GivenCloseTime[]
  outcome?: GivenOutcome
  /** The keys of the records to link. */
  links?: { column: string; target: Target; keys: string[] }[]
  /** The id of the record to update. */
  id?: string
  /** All addresses and numbers. */
  several?: Partial<Record<Several, string[]>>
  issues: RowIssue[]
}

/** `formats`: of each column of the header, in its order. */
export function columnsOf(
  header: string[],
  mapping: Mapping,
  targets: Targets,
  formats: ColumnFormat[] = [],
): Column[] {
  return header.flatMap((name, index) => {
    const target = mapping[name] ? targetOf(targets, mapping[name]) : undefined
    return target ? [{ name, index, target, format: formats[index] }] : []
  })
}

/** The settings for reading the rows of a file. */
export interface Reading {
  columns: Column[]
  /** The number of columns of the header. */
  width: number
  delimiter: string
  /** The currencies of signs that several have. */
  currencies: Currencies
  /** The organization's. */
  currency: string
  /** The time zone of times without an offset. */
  timezone: string
  /** The country of phone numbers without a country code. */
  country?: string | undefined
  /** Whether stages that no pipeline has are created. */
  create_stages?: boolean
  /** What values of a column mean, by column; a value in lower case. */
  values: ReadonlyMap<string, ReadonlyMap<string, string | null>>
  /** Who may be named. */
  users: readonly NamedUser[]
}

export function readRow(reading: Reading, cells: string[]): RowFields {
  const { columns, width } = reading
  const row: RowFields = { fields: {}, issues: [] }
  if (isTooWide(cells, width))
    row.issues.push({
      column: null,
      message: `the row has ${cells.length} cells and the header ${width}: a cell that contains the delimiter must be quoted`,
    })
  for (const column of columns) {
    const { name, index } = column
    const cell = cells[index]
    if (cell === undefined || !isFilled(cell)) continue
    try {
      if (cell.includes(WRONG_BYTE))
        throw new CellProblem('has bytes that are not UTF-8: correct it, or import the file in its encoding')
      const text = meaningOf(reading, column, cell)
      if (text !== null) put(row, column, text, reading)
    } catch (error) {
      if (!(error instanceof CellProblem)) throw error
      row.issues.push({ column: name, message: error.message })
    }
  }
  keepSeveral(row)
  agree(row, columns)
  settleOutcome(row)
  closeTimes(row)
  withZone(row, columns, reading.timezone)
  // Also where `do_not_contact` says no: an opt-out that is ignored cannot be taken back.
  if (row.optedOut) row.fields.do_not_contact = true
  return row
}

/** What `values` of the import say that a text of a column means; null: nothing. */
const meaningOf = ({ values }: Reading, { name }: Column, text: string): string | null => {
  const meant = values.get(name)?.get(text.trim().toLowerCase())
  return meant === undefined ? text : meant
}

/**
 * The first address and number of all are those of the record, unless another column has them; the rest are its others.
 */
function keepSeveral({ fields, several = {} }: RowFields): void {
  for (const [field, all, others] of [
    ['email', several.emails, 'other_emails'],
    ['phone', several.phones, 'other_phones'],
  ] as const) {
    if (!all) continue
    fields[field] ??= all[0]
    const isOwn = (one: string) =>
      one.toLowerCase() === String(fields[field]).toLowerCase() || one === fields.mobile_phone
    const rest = all.filter((one) => !isOwn(one))
    if (rest.length > 0) addOthers(fields, others, rest)
  }
}

/** Several columns may have some. */
function addOthers(fields: RecordInput, name: string, others: string[]): void {
  fields[name] = [...new Set([...((fields[name] as string[] | undefined) ?? []), ...others])]
}

/** The currency that an amount names is that of the record. A currency of another column must be the same. */
function agree(row: RowFields, columns: Column[]): void {
  if (row.named === undefined) return
  const { column, currency } = row.named
  const own = row.fields.currency
  if (own === undefined) row.fields.currency = currency
  else if (String(own).trim().toUpperCase() !== currency)
    row.issues.push({
      column,
      message: `is in ${currency}, but ${columns.find(({ target }) => target.name === 'currency')?.name} says ${own}`,
    })
}

/** Local times are in the time zone of the import. What is no time is refused later. */
function withZone({ fields }: RowFields, columns: Column[], timezone: string): void {
  const native = columns.flatMap(({ target: { name, type } }) =>
    type === 'datetime' && !name.includes('.') ? name : [],
  )
  const custom = columns.flatMap(({ target: { name, type } }) =>
    type === 'datetime' && name.includes('.') ? name.split('.')[1]! : [],
  )
  const put = (values: Record<string, unknown>, names: string[]) => {
    for (const name of names)
      if (typeof values[name] === 'string') values[name] = inZone(values[name], timezone) ?? values[name]
  }
  put(fields, [...native, 'closed_at'])
  if (fields.custom_fields) put(fields.custom_fields as Record<string, unknown>, custom)
}

/** Whether a row has cells beyond the header: its cells are probably in the wrong columns. */
export const isTooWide = (cells: string[], width: number): boolean => cells.slice(width).some(isFilled)

export const isFilled = (cell: string): boolean => cell.trim() !== ''

function put(row: RowFields, of: Column, cell: string, reading: Reading): void {
  const { fields } = row
  const { name: column, target, format } = of
  const { name, type, choices = [] } = target
  const items = () =>
    itemsOf(target, unescapeFormula(cell)).flatMap((item) => meaningOf(reading, of, item) ?? [])
  if (type === 'tags') fields.tags = items()
  else if (type === 'choices')
    setField(
      fields,
      name,
      items().map((item) => readChoice(item, choices)),
    )
  else if (type === 'user') fields[name] = idOfUser(cell, reading.users)
  else if (type === 'outcome') row.outcome = readOutcome(target, unescapeFormula(cell))
  else if (type === 'id') row.id = unescapeFormula(cell).trim()
  else if (type === 'link') row.links = [...(row.links ?? []), { column, target, keys: keysIn(target, cell) }]
  else if (type === 'emails' || name === 'email') putEmails(row, target, cell)
  else if (type === 'phones' || name === 'phone' || name === 'mobile_phone')
    putPhones(row, target, cell, reading.country)
  else if (type === 'company_name') row.companyName = unescapeFormula(cell).trim()
  else if (type === 'opted_out' || type === 'opted_in') {
    if (saysOptOut(unescapeFormula(cell), type)) row.optedOut = true
  } else if (type === 'close_date' || type === 'won_at' || type === 'lost_at') {
    const time = String(readCell(cell, 'datetime', [], reading.delimiter, format))
    const { pipelines = [] } = target
    row.closeTimes = [...(row.closeTimes ?? []), { column, type, time, pipelines }]
  } else if (type === 'full_name') row.fields = { ...splitName(unescapeFormula(cell)), ...fields }
  else {
    let text = cell
    if (type === 'money') {
      const { amount, currency } = readMoney(unescapeFormula(cell), reading.currencies, reading.currency)
      text = amount
      if (currency) row.named = { column, currency }
    }
    // The label of a stage that exists or that the import creates: the pipeline of the deal decides which stage it is.
    const value =
      isLabel(target, text) || (reading.create_stages && stageMissing(target, text))
        ? text.trim()
        : readCell(text, type, choices, reading.delimiter, format)
    setField(fields, name, value)
  }
}

function setField(fields: RecordInput, name: string, value: unknown): void {
  const [outer, inner] = name.split('.') as [string, string | undefined]
  if (inner === undefined) fields[outer] = value
  else {
    // Modified in place: copying it for each of a thousand columns would take quadratic time.
    fields[outer] ??= {}
    const members = fields[outer] as Record<string, unknown>
    members[inner] = value
  }
}

/** The keys of the records that a cell names. A name may have a comma. */
function keysIn({ link }: Target, cell: string): string[] {
  const text = unescapeFormula(cell)
  if (link!.by === 'name') return text.split(/;|:::|\||\n/).flatMap((name) => name.trim() || [])
  return link!.by === 'email' ? readEmails(text).emails : readList(cell)
}

function idOfUser(cell: string, users: readonly NamedUser[]): string {
  const id = userNamed(users, unescapeFormula(cell))
  if (id !== undefined) return id
  throw new CellProblem(
    'must be the email or the name of one user: say in `values` who it is, or null for nobody',
  )
}

/** The address goes to the column's field, or to the list; others go to the list. */
function putEmails(row: RowFields, target: Target, cell: string): void {
  const { name, emails } = readEmails(unescapeFormula(cell))
  if (name && target.type !== 'emails') row.fields = { ...splitName(name), ...row.fields }
  putSeveral(row, 'emails', target, emails)
}

function putPhones(row: RowFields, target: Target, cell: string, country: string | undefined): void {
  const all = readPhones(unescapeFormula(cell)).map((one) => toE164(one, country))
  putSeveral(row, 'phones', target, all)
}

function putSeveral(row: RowFields, list: Several, target: Target, all: string[]): void {
  if (target.name === `other_${list}`) {
    addOthers(row.fields, target.name, all)
    return
  }
  if (target.type === 'emails' || target.type === 'phones' || all.length > 1) {
    row.several ??= {}
    row.several[list] = [...(row.several[list] ?? []), ...all]
  }
  if (target.type !== 'emails' && target.type !== 'phones') row.fields[target.name] = all[0]
}

/** Whether a cell says that the person must not be contacted. Throws CellProblem for one that says neither. */
function saysOptOut(text: string, type: Consent): boolean {
  const yes = readBoolean(text)
  if (yes !== undefined) return yes === (type === 'opted_out')
  const out = readConsent(text) ?? (/\d{4}/.test(text) ? type === 'opted_out' : undefined)
  if (out === undefined) throw new CellProblem('must be yes or no, a status such as unsubscribed, or a date')
  return out
}

/** The fields that a target sets besides the one of its name. */
function fieldsOf(target: Target): string[] {
  if (target.type === 'emails') return ['email', 'other_emails']
  if (target.type === 'phones') return ['phone', 'other_phones']
  if (target.type === 'full_name') return ['first_name', 'last_name']
  if (target.type === 'outcome') return ['stage']
  return target.link?.field ? [target.link.field] : fieldsOfCloseTime(target)
}

/** Converts issues of a record to issues of the row: the column replaces the field. */
export function rowIssues(columns: Column[], issues: Pick<Issue, 'loc' | 'msg'>[]): RowIssue[] {
  const byTarget = new Map<string, Column>()
  for (const column of columns)
    for (const name of [column.target.name, ...fieldsOf(column.target)])
      if (!byTarget.has(name)) byTarget.set(name, column)
  return firstOfEachLoc(issues).map(({ loc, msg }) => {
    const path = (loc[0] === 'body' ? loc.slice(1) : loc).map(String)
    const column = byTarget.get(path.slice(0, 2).join('.')) ?? byTarget.get(path[0] ?? '')
    const field = path.join('.')
    return { column: column?.name ?? null, message: column ? msg : field ? `${field}: ${msg}` : msg }
  })
}
