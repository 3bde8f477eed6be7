import { namedUsers } from '../access/members.ts'
import { stopImport as markStopped, queueImport } from '../files/moves/imports.ts'
import type { Currencies } from '../model/csv/money-cell.ts'
import { AppError, conflict, type Issue, invalid } from '../model/errors.ts'
import { linkTargets, type Mapping, type Targets, targetOf } from '../model/imports/targets.ts'
import { wrongMeaning } from '../model/imports/values.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { isIdentity } from '../model/records/upsert-keys.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type Formats, type ImportFile, type ImportRow, lockImport, type Values } from './imports.ts'
import { meantValues } from './meant.ts'
import { targetsFor, withoutSensitive } from './targets.ts'
import { forgetKeys } from './try-rows.ts'

/** User actions on an import. Its statuses and their moves are in `db/files/moves/`. */

/** Whether it was started; a dry run counts. */
export const wasStarted = ({ starts }: ImportRow): boolean => starts > 0

/** The progress columns of an import before its first row. */
export const progressAtStart = ({ start }: Pick<ImportFile, 'start'>) => ({
  next_byte: start.byte,
  next_line: start.line,
  rows_read: 0,
  rows_created: 0,
  rows_updated: 0,
  rows_skipped: 0,
  rows_failed: 0,
  error: null,
  preview: null,
  started_at: null,
  ended_at: null,
})

export interface StartOptions {
  mapping?: Mapping | undefined
  formats?: Formats | undefined
  currencies?: Currencies | undefined
  values?: Values | undefined
  time_zone?: string | undefined
  country?: string | undefined
  create_stages?: boolean | undefined
  dry_run?: boolean | undefined
}

/**
 * Queues an import from its first row. An import can be started again after a dry run. `check` receives the target
 * fields before the import is queued. Throws `not_found`, `conflict`; `validation_error` for an invalid mapping.
 */
export async function startImport(
  tx: Tenant,
  id: string,
  {
    mapping = {},
    formats = {},
    currencies = {},
    values = {},
    time_zone,
    country,
    create_stages,
    dry_run,
  }: StartOptions,
  check: (targets: Mapping) => void,
): Promise<ImportRow> {
  const row = await lockImport(tx, id)
  if (!row.file) throw conflict('the import has no file yet', { hint: 'PUT it to …/file first' })
  if (row.status === 'queued' || row.status === 'running') throw conflict('the import is already running')
  if (wasStarted(row) && !row.dry_run)
    throw row.status === 'completed'
      ? conflict('the import is completed', { hint: 'create another import' })
      : conflict(`the import has ${row.status === 'stopped' ? 'been stopped' : 'failed'}`, {
          hint: 'resume it',
        })
  if (!row.upload_id) throw expired()
  const targets = await targetsFor(tx, row.entity, row.upsert_by)
  const resolved = resolveMapping(row, row.file, mapping, targets)
  requireColumns(row.file, {
    formats: { ...row.formats, ...formats },
    values: { ...row.meanings, ...values },
  })
  const meanings = { ...row.meanings, ...values }
  await requireMeanings(tx, meanings, resolved, targets)
  check(resolved)
  await tx.trx('import_errors').where({ organization_id: tx.organizationId, import_id: id }).delete()
  await forgetKeys(tx, id)
  return queueImport(tx, row, {
    ...progressAtStart(row.file),
    targets: JSON.stringify(resolved),
    file: JSON.stringify(
      withoutSensitive(
        { ...row.file, meant: await meantValues(tx, row.file, resolved, targets) },
        resolved,
        targets,
      ),
    ),
    formats: JSON.stringify({ ...row.formats, ...formats }),
    currencies: JSON.stringify({ ...row.currencies, ...currencies }),
    meanings: JSON.stringify(meanings),
    time_zone: time_zone ?? row.time_zone,
    country: country ?? row.country,
    create_stages: create_stages ?? row.create_stages,
    dry_run: dry_run ?? row.dry_run,
    actor: JSON.stringify(tx.actor),
  })
}

/** Stops an import after its current rows; written records stay. Throws `not_found`, `conflict`. */
export async function stopImport(tx: Tenant, id: string): Promise<ImportRow> {
  const row = await lockImport(tx, id)
  if (row.status === 'stopped') return row
  if (row.status !== 'queued' && row.status !== 'running')
    throw conflict(`the import is not running: it is ${row.status}`)
  return markStopped(tx, id)
}

/** Resumes an import after the last processed row. Throws `not_found`, `conflict`. */
export async function resumeImport(tx: Tenant, id: string): Promise<ImportRow> {
  const row = await lockImport(tx, id)
  if (row.status === 'queued' || row.status === 'running') return row
  if (row.status !== 'stopped' && row.status !== 'failed')
    throw conflict(`the import cannot be resumed: it is ${row.status}`)
  if (!row.upload_id) throw expired()
  return queueImport(tx, row, { error: null, ended_at: null })
}

const expired = () => new AppError('conflict', 'the file has been deleted', { hint: 'create another import' })

/** Throws `validation_error` for formats and values of columns that the file does not have. */
function requireColumns({ header }: ImportFile, given: { formats: Formats; values: Values }): void {
  const issues = Object.entries(given).flatMap(([member, columns]) =>
    Object.keys(columns)
      .filter((column) => !header.includes(column))
      .map((column) => ({
        loc: ['body', member, column],
        msg: 'the file has no such column',
        type: 'invalid_format',
        hint: `its columns are ${header.join(', ')}`.slice(0, 500),
      })),
  )
  if (issues.length > 0) throw invalid(issues)
}

/** Throws `validation_error` for values that the field of their column does not have. */
async function requireMeanings(
  tx: Tenant,
  meanings: Values,
  mapping: Mapping,
  targets: Targets,
): Promise<void> {
  const issues: Issue[] = []
  const users = Object.keys(meanings).length > 0 ? await namedUsers(tx) : []
  for (const [column, values] of Object.entries(meanings)) {
    const target = targetOf(targets, mapping[column] ?? '')
    for (const [value, meant] of Object.entries(values)) {
      const hint = target && meant !== null ? wrongMeaning(target, meant, users) : undefined
      if (hint !== undefined) {
        const msg = `${meant} is not a value of ${target!.name}`
        issues.push({ loc: ['body', 'values', column, value], msg, type: 'invalid_value', hint })
      }
    }
  }
  if (issues.length > 0) throw invalid(issues)
}

/** The target of each column, from the mapping of the start, of the creation, or else the proposal. */
function resolveMapping(row: ImportRow, file: ImportFile, given: Mapping, targets: Targets): Mapping {
  const explicit = { ...row.mapping, ...given }
  const issues: Issue[] = []
  const wrong = (column: string, msg: string, hint?: string) =>
    issues.push({ loc: ['body', 'mapping', column], msg, type: 'invalid_mapping', ...(hint ? { hint } : {}) })
  for (const [column, target] of Object.entries(explicit)) {
    if (!file.header.includes(column))
      wrong(column, 'the file has no such column', `its columns are ${file.header.join(', ')}`.slice(0, 500))
    if (target !== null && !targetOf(targets, target))
      wrong(column, `${target} cannot be written`, `fields are ${[...targets.byName.keys()].join(', ')}`)
  }
  const taken = new Set(Object.values(explicit))
  const isShared = (target: string) => targets.byName.get(target)?.isShared === true
  const resolved = Object.fromEntries(
    file.header.map((column): [string, string | null] => {
      if (Object.hasOwn(explicit, column)) return [column, explicit[column]!]
      // An explicit target overrides a proposed one.
      const proposed = file.proposed[column] ?? null
      const isTaken = proposed !== null && taken.has(proposed) && !isShared(proposed)
      return [column, isTaken ? null : proposed]
    }),
  )
  const columnOf = new Map<string, string>()
  for (const [column, target] of Object.entries(resolved)) {
    if (target === null) continue
    const other = columnOf.get(target)
    if (other !== undefined && !isShared(target)) wrong(column, `${other} is already mapped to ${target}`)
    columnOf.set(target, column)
  }
  for (const msg of missing(row, columnOf)) issues.push({ loc: ['body', 'mapping'], msg, type: 'missing' })
  if (issues.length > 0) throw invalid(issues)
  return resolved
}

/** Whether columns give the field, also by naming the record to which it refers. */
const isMapped = (entity: KindName, name: string, columnOf: Map<string, string>): boolean =>
  columnOf.has(name) ||
  (name === 'email' && columnOf.has('emails')) ||
  linkTargets(entity).some(({ name: target, link }) => link?.field === name && columnOf.has(target))

/** Messages for required fields to which no column is mapped. */
function missing({ entity, mode, upsert_by }: ImportRow, columnOf: Map<string, string>): string[] {
  if (mode === 'upsert') {
    const parts = isIdentity(entity, upsert_by!) ? kinds[entity].identity! : [upsert_by!]
    return parts
      .filter(
        (name) => kinds[entity].fields[name]?.default === undefined && !isMapped(entity, name, columnOf),
      )
      .map((name) => `no column is mapped to ${name}, ${parts.length > 1 ? 'a part of ' : ''}the upsert key`)
  }
  const { fields, atLeastOneOf } = kinds[entity]
  const absent = Object.entries(fields)
    .filter(
      ([name, field]) => field.required && field.default === undefined && !isMapped(entity, name, columnOf),
    )
    .map(([name]) => `no column is mapped to ${name}, which is required`)
  const some =
    atLeastOneOf?.some((name) => [name, 'full_name', 'emails', 'phones'].some((one) => columnOf.has(one))) ??
    true
  return some ? absent : [...absent, `no column is mapped to any of ${atLeastOneOf!.join(', ')}`]
}
