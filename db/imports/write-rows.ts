import type { z } from 'zod'
import type { CsvRow } from '../csv/rows.ts'
import type { AppError, Issue } from '../errors.ts'
import { findOldestCompany } from '../incoming/dedupe.ts'
import { isRefusal } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { createMany, createRecord } from '../records/create.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import { type Finder, finderBy } from '../records/find-by-key.ts'
import { preparedCustomFields, readCustomFields } from '../records/model/custom-fields/values.ts'
import type { EntityName } from '../records/model/kind.ts'
import { entities } from '../records/model/kinds/index.ts'
import { type AgxRecord, createSchema, type RecordInput, updateSchema } from '../records/model/schemas.ts'
import { upsertKey } from '../records/model/upsert-keys.ts'
import { type Outcome, settle } from '../records/sets.ts'
import { updateMany } from '../records/update.ts'
import type { ImportRow } from './imports.ts'
import {
  isFilled,
  isTooWide,
  type Reading,
  type RowFields,
  type RowIssue,
  readRow,
  rowIssues,
} from './read-row.ts'

export interface Written {
  created: number
  updated: number
  /** Nothing to say, or nothing that was not there already. */
  skipped: number
  failures: { row: CsvRow; issues: RowIssue[] }[]
  /** The records of those that were created. */
  made: { row: CsvRow; record: AgxRecord }[]
}

const nothing = (): Written => ({ created: 0, updated: 0, skipped: 0, failures: [], made: [] })

export interface Job extends Pick<ImportRow, 'entity' | 'mode' | 'upsert_by'>, Reading {}

/** A row on its way. */
interface Line {
  row: CsvRow
  read: RowFields
  issues: RowIssue[]
}

/** Writes the records of rows, and finds out what is wrong with those that it cannot write; they write nothing. */
export async function writeRows(tx: Tenant, job: Job, rows: CsvRow[]): Promise<Written> {
  const filled = rows.filter(({ cells }) => cells.some(isFilled))
  const lines = filled.map((row): Line => {
    const read = readRow(job, row.cells)
    return { row, read, issues: read.issues }
  })
  const written: Written = { ...nothing(), skipped: rows.length - filled.length }
  await linkCompanies(
    tx,
    job,
    lines.filter((line) => isSound(line) && isValid(job, line)),
  )
  const finder = job.mode === 'upsert' ? await finderBy(tx, job.entity, job.upsert_by!) : undefined
  for (const wave of finder
    ? waves(job, finder, lines)
    : [new Map(lines.filter(isSound).map((line) => [line, '']))]) {
    const found = finder ? await existing(job, finder, wave) : new Map<Line, string>()
    const fresh = [...wave.keys()].filter((line) => isSound(line) && !found.has(line))
    await create(tx, job, written, fresh)
    await update(tx, job, written, found)
  }
  await nameAllFaults(tx, job, lines)
  written.failures = lines.filter((line) => !isSound(line)).map(({ row, issues }) => ({ row, issues }))
  return written
}

/**
 * The same, each row on its own: for when one of them makes the database refuse them all. What it did not take is a row
 * that failed.
 */
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
  }
  return sum
}

const isSound = ({ issues }: Line) => issues.length === 0

/** No company is made for a row that will be refused. */
const isValid = ({ entity, mode }: Job, { read }: Line) =>
  read.companyName !== undefined &&
  (mode === 'create' ? createSchema(entity) : updateSchema(entity)).safeParse(read.fields).success

async function create(tx: Tenant, job: Job, written: Written, lines: Line[]): Promise<void> {
  const parsed = parse(job, createSchema(job.entity), lines)
  const outcomes = await createMany(tx, job.entity, [...parsed.values()])
  count(job, written, [...parsed.keys()], outcomes, new Set())
}

async function update(tx: Tenant, job: Job, written: Written, found: Map<Line, string>): Promise<void> {
  // Of what is there only what the row says is changed: nothing is required, and nothing has a default.
  const parsed = parse(job, updateSchema(job.entity), [...found.keys()])
  const before = await standing(tx, job, [...found.values()])
  const updates = [...parsed].map(([line, patch]) => {
    const id = found.get(line)!
    return { id, patch: withWholeAddresses(job, patch, before.get(id)) }
  })
  const outcomes = await updateMany(tx, job.entity, updates)
  const same = new Set(
    outcomes.flatMap((one) =>
      'record' in one && before.get(one.record.id)?.version === one.record.version ? [one.record.id] : [],
    ),
  )
  count(job, written, [...parsed.keys()], outcomes, same)
}

function count(job: Job, written: Written, lines: Line[], outcomes: Outcome[], same: Set<string>): void {
  for (const [i, outcome] of outcomes.entries()) {
    if ('error' in outcome) lines[i]!.issues = issuesOf(job, outcome.error)
    else if (outcome.created) {
      written.created++
      written.made.push({ row: lines[i]!.row, record: outcome.record })
    } else if (same.has(outcome.record.id)) written.skipped++
    else written.updated++
  }
}

/** What a schema makes of each line; those that it refuses have issues then. */
function parse(job: Job, schema: ReturnType<typeof createSchema>, lines: Line[]): Map<Line, RecordInput> {
  const inputs = new Map<Line, RecordInput>()
  for (const line of lines) {
    const parsed = schema.safeParse(line.read.fields, { reportInput: true })
    if (parsed.success) inputs.set(line, parsed.data)
    else line.issues = rowIssues(job.columns, parsed.error.issues.map(toIssue))
  }
  return inputs
}

function toIssue({ path, message, code, input }: z.core.$ZodIssue) {
  const missing = code === 'invalid_type' && input === undefined
  return { loc: path.map(String), msg: missing ? 'is required' : message }
}

/** Adds what else is wrong with lines that are refused, so that they can be put right in one go. */
async function nameAllFaults(
  tx: Tenant,
  { entity, mode, columns, width }: Job,
  lines: Line[],
): Promise<void> {
  const refused = lines.filter((line) => !isSound(line) && !isTooWide(line.row.cells, width))
  if (refused.length === 0) return
  const rules = await lockFieldRules(tx, entity)
  // Whether an upsert would have created is not known of every line: what only a new record needs is not asked for.
  const [schema, readFields] =
    mode === 'create'
      ? [createSchema(entity), preparedCustomFields]
      : [updateSchema(entity), readCustomFields]
  for (const line of refused) {
    const { fields } = line.read
    const ofRecord = schema.safeParse(fields, { reportInput: true }).error?.issues.map(toIssue) ?? []
    const ofFields = readFields(rules, fields.custom_fields).issues
    for (const { column, message } of rowIssues(columns, [...ofRecord, ...ofFields])) {
      const isNamed = line.issues.some((one) =>
        column === null ? one.message === message : one.column === column,
      )
      if (!isNamed) line.issues = [...line.issues, { column, message }]
    }
  }
}

/** Lines with their keys. Of those with the same key, what the first one creates, the second one changes. */
function waves(job: Job, finder: Finder, lines: Line[]): Map<Line, string>[] {
  const found: Map<Line, string>[] = []
  const seen = new Map<string, number>()
  for (const line of lines.filter(isSound)) {
    const key = keyOf(job, finder, line)
    if (key === undefined) {
      line.issues = issueOfKey(job, 'is empty, or nothing to find a record by')
      continue
    }
    const wave = seen.get(key) ?? 0
    seen.set(key, wave + 1)
    found[wave] ??= new Map()
    found[wave].set(line, key)
  }
  return found
}

/** The value by which a line's record is found, in the form in which it is compared. */
function keyOf({ entity, upsert_by }: Job, finder: Finder, { read }: Line): string | undefined {
  const parsed = updateSchema(entity).safeParse(read.fields)
  // A row that is refused for something else is refused later.
  const value = upsertKey(upsert_by!, parsed.success ? parsed.data : read.fields)
  return value === undefined ? undefined : finder.keyOf(value)
}

/** The records that lines are about, by id. */
async function existing(job: Job, finder: Finder, wave: Map<Line, string>): Promise<Map<Line, string>> {
  const found = new Map<Line, string>()
  const ids = await finder.find([...wave.values()])
  for (const [line, key] of wave) {
    const those = ids.get(key) ?? []
    if (those.length > 1)
      line.issues = issueOfKey(
        job,
        `${those.length} ${job.entity} have this ${job.upsert_by}: merge them first`,
      )
    else if (those[0]) found.set(line, those[0])
  }
  return found
}

const issueOfKey = ({ columns, upsert_by }: Job, msg: string) =>
  rowIssues(columns, [{ loc: upsert_by!.split('.'), msg }])

/** Of records that are about to be changed, and are held until then: the version, and the addresses. */
async function standing(tx: Tenant, { entity }: Job, ids: string[]) {
  const rows = await tx
    .trx(entity)
    .where({ organization_id: tx.organizationId })
    .whereIn('id', ids)
    .orderBy('id')
    .forNoKeyUpdate()
    .select<(RecordInput & { id: string; version: number })[]>('id', 'version', ...addressesOf(entity))
  return new Map(rows.map((row) => [row.id, row]))
}

const addressesOf = (entity: EntityName) =>
  Object.entries(entities[entity].fields).flatMap(([name, { type }]) => (type === 'address' ? [name] : []))

/** The parts that a row does not name stay as they are. */
function withWholeAddresses({ entity }: Job, patch: RecordInput, before: RecordInput = {}): RecordInput {
  const named = addressesOf(entity).filter((name) => patch[name])
  return {
    ...patch,
    ...Object.fromEntries(
      named.map((name) => [name, { ...(before[name] as object | null), ...(patch[name] as object) }]),
    ),
  }
}

/** Companies that are only named are found by their name, or made; in one order, for each name is locked. */
async function linkCompanies(tx: Tenant, { columns }: Job, lines: Line[]): Promise<void> {
  const keyOf = ({ read }: Line) => read.companyName!.toLowerCase()
  const ids = new Map<string, Company>()
  for (const line of [...lines].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))) {
    const company = ids.get(keyOf(line)) ?? (await findOrCreateCompany(tx, line.read.companyName!))
    ids.set(keyOf(line), company)
    if ('id' in company) line.read.fields.company_id = company.id
    else line.issues = rowIssues(columns, [{ loc: ['company_name'], msg: company.refused }])
  }
}

/** Or why there can be none of which nothing but the name is known. */
type Company = { id: string } | { refused: string }

async function findOrCreateCompany(tx: Tenant, name: string): Promise<Company> {
  const found = await findOldestCompany(tx, name)
  if (found !== undefined) return { id: found }
  const parsed = createSchema('companies').safeParse({ name })
  if (!parsed.success) return refusedCompany(parsed.error.issues.map(toIssue))
  const made = await settle(async () => {
    const { id } = await savepoint(tx, (tx) => createRecord(tx, 'companies', parsed.data))
    return { id }
  })
  if (!('error' in made)) return made
  const { message, details } = made.error
  return refusedCompany(details.issues ?? [{ loc: [], msg: message }])
}

const refusedCompany = (issues: Pick<Issue, 'loc' | 'msg'>[]) => ({
  refused: `no such company can be made: ${issues
    .map(({ loc, msg }) => [loc.filter((step) => step !== 'body').join('.'), msg].filter(Boolean).join(': '))
    .join('; ')}`,
})

function issuesOf({ columns }: Job, { message, details }: AppError): RowIssue[] {
  if (details.issues) return rowIssues(columns, details.issues)
  return rowIssues(columns, [{ loc: details.param?.split('.') ?? [], msg: message }])
}
