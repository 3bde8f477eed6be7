import type { z } from 'zod'
import { requestMessage } from '../../workflows/shared/plain-words.ts'
import { createTurns } from '../../workflows/shared/turns.ts'
import type { CsvRow } from '../model/csv/rows.ts'
import { AppError, type Issue, invalid } from '../model/errors.ts'
import {
  isFilled,
  isTooWide,
  type Reading,
  type RowFields,
  type RowIssue,
  readRow,
  rowIssues,
} from '../model/imports/read-row.ts'
import { preparedCustomFields, readCustomFields } from '../model/records/custom-fields/values.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { type AgxRecord, createSchema, type RecordInput, upsertSchema } from '../model/records/schemas.ts'
import { isRefusal } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { companiesNamed } from '../records/companies.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import { type Finder, finderBy } from '../records/find-by-key.ts'
import type { Failed, Outcome } from '../records/sets.ts'
import { upsertKeyed } from '../records/upsert.ts'
import type { ImportRow } from './imports.ts'

export interface Written {
  created: number
  updated: number
  /** The number of rows that are empty or change nothing. */
  skipped: number
  failures: { row: CsvRow; issues: RowIssue[] }[]
  /** The records that were created. */
  made: { row: CsvRow; record: AgxRecord }[]
  /** The records that were found. */
  found: { row: CsvRow; id: string; changed: boolean }[]
}

const nothing = (): Written => ({ created: 0, updated: 0, skipped: 0, failures: [], made: [], found: [] })

export interface Job extends Pick<ImportRow, 'entity' | 'mode' | 'upsert_by'>, Reading {}

/** A row before the validation of its fields. */
interface ReadLine {
  row: CsvRow
  read: RowFields
  /** The records to associate with its record. */
  linked: { object: KindName; id: string }[]
}

/** A row that is being processed. */
interface Line extends ReadLine {
  /** The row as an update of a record; in mode `create` the same as `input`. */
  patch: RecordInput | AppError
  /** The row as a new record. */
  input: RecordInput | AppError
  /** The upsert key. */
  key: string | undefined
  issues: RowIssue[]
}

/** Writes the records of rows. A row with any issue writes nothing. */
export async function writeRows(tx: Tenant, job: Job, rows: CsvRow[]): Promise<Written> {
  const filled = rows.filter(({ cells }) => cells.some(isFilled))
  const turn = createTurns(tx.organizationId)
  const read: ReadLine[] = []
  for (const row of filled) {
    read.push({ row, read: readRow(job, row.cells), linked: [] })
    await turn()
  }
  // The records that a row names may be required, or a part of its key.
  await linkByKeys(tx, read)
  const lines: Line[] = []
  for (const line of read) {
    lines.push(lineOf(job, line))
    await turn()
  }
  // In mode `create` no row has a key, so each creates a record.
  const finder = await finderBy(tx, job.entity, job.upsert_by ?? 'external_id')
  if (job.mode === 'upsert') await readKeys(job, finder, lines)
  const written: Written = { ...nothing(), skipped: rows.length - filled.length }
  for (const { line, outcome } of await writeLines(tx, job, finder, lines))
    if (outcome.created) written.made.push({ row: line.row, record: outcome.record })
    else {
      written.found.push({ row: line.row, id: outcome.record.id, changed: outcome.changed })
      written[outcome.changed ? 'updated' : 'skipped']++
    }
  written.created = written.made.length
  await addAllIssues(tx, job, lines)
  written.failures = lines.filter((line) => !isValid(line)).map(({ row, issues }) => ({ row, issues }))
  return written
}

interface WrittenLine {
  line: Line
  outcome: Exclude<Outcome, Failed>
}

/**
 * Writes the valid lines, and sets the issues of those that fail. If a line fails for which a company was created, all
 * is rolled back and written again without the failed lines: a company that no record is linked to would be found by
 * other rows, and its event sent.
 */
async function writeLines(tx: Tenant, job: Job, finder: Finder, lines: Line[]): Promise<WrittenLine[]> {
  const writeOnce = async (tx: Tenant): Promise<WrittenLine[]> => {
    const created = await linkCompanies(tx, job, lines)
    const valid = lines.filter(isValid)
    const outcomes = await upsertKeyed(tx, finder, valid, { adding: { addressParts: true, cutTexts: true } })
    const written: WrittenLine[] = []
    for (const [i, outcome] of outcomes.entries()) {
      const line = valid[i]!
      if ('error' in outcome) line.issues = issuesOf(job, outcome.error)
      else written.push({ line, outcome })
    }
    const linked = new Set(written.flatMap(({ line }) => created.get(line) ?? []))
    if ([...created.values()].some((id) => !linked.has(id))) throw new UnlinkedCompany()
    return written
  }
  const namesCompany = lines.some(({ read }) => read.companyName !== undefined)
  if (!namesCompany) return writeOnce(tx)
  // Each attempt has fewer valid lines.
  for (;;) {
    const written = await savepoint(tx, writeOnce).catch((error: unknown) => {
      if (!(error instanceof UnlinkedCompany)) throw error
    })
    if (written) return written
  }
}

class UnlinkedCompany extends Error {}

/** Writes the rows one by one, after the database refused a statement for all of them: only the refused row fails. */
export async function writeEachRow(tx: Tenant, job: Job, rows: CsvRow[]): Promise<Written> {
  const sum = nothing()
  for (const row of rows) {
    const one = await savepoint(tx, (inner) => writeRows(inner, job, [row])).catch((error: unknown) => {
      if (!isRefusal(error)) throw error
      const issues = [{ column: null, message: 'the row cannot be stored: something went wrong on our side' }]
      return { ...nothing(), failures: [{ row, issues }] }
    })
    for (const name of ['created', 'updated', 'skipped'] as const) sum[name] += one[name]
    sum.failures.push(...one.failures)
    sum.made.push(...one.made)
    sum.found.push(...one.found)
  }
  return sum
}

const isValid = ({ issues }: Line) => issues.length === 0

function lineOf({ entity, mode }: Job, line: ReadLine): Line {
  const { read, linked } = line
  const parse = (schema: z.ZodType<RecordInput>) => {
    const parsed = schema.safeParse(read.fields, { reportInput: true })
    if (!parsed.success) return invalid(parsed.error.issues.map(toIssue))
    return linked.length > 0 ? { ...parsed.data, associations: linked } : parsed.data
  }
  const input = parse(createSchema(entity))
  // An update has no required fields and no defaults.
  const patch = mode === 'create' ? input : parse(upsertSchema(entity))
  return { ...line, patch, input, key: undefined, issues: read.issues }
}

function toIssue(issue: z.core.$ZodIssue): Issue {
  const { path, code, input } = issue
  const missing = code === 'invalid_type' && input === undefined
  return {
    loc: path.map(String),
    msg: missing ? 'is required' : requestMessage(issue),
    type: code ?? 'custom',
  }
}

/** Adds the remaining issues of refused rows, so that all can be corrected together. */
async function addAllIssues(tx: Tenant, job: Job, lines: Line[]): Promise<void> {
  const refused = lines.filter((line) => !isValid(line) && !isTooWide(line.row.cells, job.width))
  if (refused.length === 0) return
  const rules = await lockFieldRules(tx, job.entity)
  const readFields = job.mode === 'create' ? preparedCustomFields : readCustomFields
  const turn = createTurns(tx.organizationId)
  for (const line of refused) {
    await turn()
    const issues = [
      ...(line.patch instanceof AppError ? line.patch.details.issues! : []),
      ...readFields(rules, line.read.fields.custom_fields).issues,
    ]
    const nameOf = ({ column, message }: RowIssue) => (column === null ? ` ${message}` : `:${column}`)
    const named = new Set(line.issues.flatMap((one) => [nameOf(one), nameOf({ ...one, column: null })]))
    const others = rowIssues(job.columns, issues).filter((one) => {
      const isNamed = named.has(nameOf(one))
      named.add(nameOf(one)).add(nameOf({ ...one, column: null }))
      return !isNamed
    })
    line.issues = [...line.issues, ...others]
  }
}

/** Sets the upsert keys of lines, normalized for comparison. */
async function readKeys({ columns, upsert_by, entity }: Job, finder: Finder, lines: Line[]): Promise<void> {
  const refuse = (line: Line, msg: string) => {
    line.issues = rowIssues(columns, [{ loc: upsert_by!.split('.'), msg }])
  }
  for (const line of lines.filter(isValid)) {
    // Other errors of the row are reported later.
    const { fields, id } = line.read
    line.key = finder.keyOf(id !== undefined ? { id } : line.patch instanceof AppError ? fields : line.patch)
    if (line.key !== undefined) continue
    const issues = line.patch instanceof AppError ? line.patch.details.issues! : []
    const ofKey = issues.filter(({ loc }) => loc.join('.') === upsert_by)
    if (ofKey.length > 0) line.issues = rowIssues(columns, ofKey)
    else refuse(line, 'is empty or not a valid upsert key')
  }
  if (upsert_by !== 'id') return
  const keyed = lines.filter(isValid)
  const found = await finder.peek(keyed.map(({ key }) => key!))
  for (const line of keyed)
    if (!found.has(line.key!)) refuse(line, `there is no ${kinds[entity].object} with this id`)
}

/** Links rows with the records that they name by a key: the first fills a reference field, others are associated. */
async function linkByKeys(tx: Tenant, lines: ReadLine[]): Promise<void> {
  const named = lines
    .filter(({ read }) => read.issues.length === 0)
    .flatMap((line) => (line.read.links ?? []).map((link) => ({ line, ...link })))
  for (const name of new Set(named.map(({ target }) => target.name))) {
    const all = named.filter(({ target }) => target.name === name)
    const { field, kind, by } = all[0]!.target.link!
    const finder = await finderBy(tx, kind, by)
    const keyOf = (text: string) => finder.keyOf({ [by]: text })
    const found = await finder.peek([
      ...new Set(all.flatMap(({ keys }) => keys.flatMap((one) => keyOf(one) ?? []))),
    ])
    for (const { line, column, keys } of all) {
      const { fields, issues } = line.read
      const ids = keys.map((text) => found.get(keyOf(text) ?? '') ?? [])
      issues.push(
        ...ids.flatMap((matches, i) =>
          matches.length === 1 ? [] : { column, message: notOne(kind, by, keys[i]!, matches.length) },
        ),
      )
      const [first, ...others] = ids.flat()
      if (first === undefined) continue
      const isFirst = field !== undefined && fields[field] == null
      if (isFirst) fields[field] = first
      line.linked.push(...(isFirst ? others : [first, ...others]).map((id) => ({ object: kind, id })))
    }
  }
}

function notOne(kind: KindName, by: string, text: string, count: number): string {
  const key = `${by} ${text.slice(0, 100)}`
  return count === 0
    ? `there is no ${kinds[kind].object} with the ${key}: import these first, or correct it`
    : `${count} ${kind} have the ${key}: merge them first, or name one by another key`
}

/** Links rows with the companies that they name. @returns the created companies of the lines that name them. */
async function linkCompanies(tx: Tenant, job: Job, all: Line[]): Promise<Map<Line, string>> {
  const named = all.filter(
    (line) => line.read.companyName !== undefined && isValid(line) && !(line.patch instanceof AppError),
  )
  const refuse = (line: Line, issues: Pick<Issue, 'loc' | 'msg'>[]) => {
    line.issues = rowIssues(job.columns, [{ loc: ['company_name'], msg: companyRefused(issues) }])
  }
  const inputs = new Map<Line, RecordInput>()
  for (const line of named) {
    const parsed = createSchema('companies').safeParse({ name: line.read.companyName })
    if (parsed.success) inputs.set(line, parsed.data)
    else refuse(line, parsed.error.issues.map(toIssue))
  }
  const created = new Map<Line, string>()
  const companies = await companiesNamed(tx, [...inputs.values()], { refusesSeveral: true })
  for (const [i, line] of [...inputs.keys()].entries()) {
    const company = companies[i]!
    if ('error' in company) {
      const { message, details } = company.error
      if (details.issues) refuse(line, details.issues)
      else line.issues = rowIssues(job.columns, [{ loc: ['company_name'], msg: message }])
      continue
    }
    if (company.created) created.set(line, company.id)
    for (const fields of [line.patch, line.input])
      if (!(fields instanceof AppError)) fields.company_id = company.id
  }
  return created
}

const companyRefused = (issues: Pick<Issue, 'loc' | 'msg'>[]) =>
  `the company cannot be created: ${issues
    .map(({ loc, msg }) => [loc.filter((step) => step !== 'body').join('.'), msg].filter(Boolean).join(': '))
    .join('; ')}`

function issuesOf({ columns }: Job, { message, details }: AppError): RowIssue[] {
  if (details.issues) return rowIssues(columns, details.issues)
  const msg = details.candidates ? `${message}: merge them first` : message
  return rowIssues(columns, [{ loc: details.param?.split('.') ?? [], msg }])
}
