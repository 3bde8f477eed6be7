import { AppError, conflict, type Issue, invalid } from '../errors.ts'
import { stopImport as markStopped, queueImport } from '../files/moves/imports.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { entities } from '../records/model/kinds/index.ts'
import { type ImportFile, type ImportRow, lockImport, type Mapping } from './imports.ts'
import { type Targets, targetOf, targetsFor } from './targets.ts'
import { forgetKeys } from './try-rows.ts'

/** What people do with an import. Its statuses and their moves are in `db/files/moves/`. */

/** Whether it has dealt with rows, or tried to. */
export const isDone = ({ starts }: ImportRow): boolean => starts > 0

/** The columns of an import that has dealt with nothing yet. */
export const progressAtStart = ({ start }: Pick<ImportFile, 'start'>) => ({
  next_byte: start.byte,
  next_line: start.line,
  ...{ rows_read: 0, rows_created: 0, rows_updated: 0, rows_skipped: 0, rows_failed: 0 },
  error: null,
  started_at: null,
  ended_at: null,
})

export interface StartOptions {
  mapping?: Mapping | undefined
  dry_run?: boolean | undefined
}

/**
 * Queues an import from its first row on. One that was tried out may be started again, also for real. `check` sees
 * what it will write before it is queued. Throws `not_found`, `conflict`; `validation_error` for a mapping that cannot
 * work.
 */
export async function startImport(
  tx: Tenant,
  id: string,
  { mapping = {}, dry_run }: StartOptions,
  check: (targets: Mapping) => void,
): Promise<ImportRow> {
  const row = await lockImport(tx, id)
  if (!row.file) throw conflict('the import has no file yet', { hint: 'PUT it to …/file first' })
  if (row.status === 'queued' || row.status === 'running') throw conflict('the import is running already')
  if (isDone(row) && !row.dry_run)
    throw row.status === 'completed'
      ? conflict('the import is completed', { hint: 'create another import' })
      : conflict(`the import has ${row.status === 'stopped' ? 'been stopped' : 'failed'}`, {
          hint: 'resume it',
        })
  if (!row.upload_id) throw expired()
  const settled = settle(row, row.file, mapping, await targetsFor(tx, row.entity))
  check(settled)
  await tx.trx('import_errors').where({ organization_id: tx.organizationId, import_id: id }).delete()
  await forgetKeys(tx, id)
  return queueImport(tx, row, {
    ...progressAtStart(row.file),
    targets: JSON.stringify(settled),
    dry_run: dry_run ?? row.dry_run,
    actor: JSON.stringify(tx.actor),
  })
}

/** It ends behind the row that it is at; what it wrote stays. Throws `not_found`, `conflict`. */
export async function stopImport(tx: Tenant, id: string): Promise<ImportRow> {
  const row = await lockImport(tx, id)
  if (row.status === 'stopped') return row
  if (row.status !== 'queued' && row.status !== 'running')
    throw conflict(`the import is not running: it is ${row.status}`)
  return markStopped(tx, id)
}

/** Goes on behind the last row that was dealt with. Throws `not_found`, `conflict`. */
export async function resumeImport(tx: Tenant, id: string): Promise<ImportRow> {
  const row = await lockImport(tx, id)
  if (row.status === 'queued' || row.status === 'running') return row
  if (row.status !== 'stopped' && row.status !== 'failed')
    throw conflict(`the import cannot be resumed: it is ${row.status}`)
  if (!row.upload_id) throw expired()
  return queueImport(tx, row, { error: null, ended_at: null })
}

const expired = () => new AppError('conflict', 'the file has been deleted', { hint: 'create another import' })

/** What each column becomes: as was said at the start, else at the creation, else as proposed. */
function settle(row: ImportRow, file: ImportFile, given: Mapping, targets: Targets): Mapping {
  const said = { ...row.mapping, ...given }
  const issues: Issue[] = []
  const wrong = (column: string, msg: string, hint?: string) =>
    issues.push({ loc: ['body', 'mapping', column], msg, type: 'invalid_mapping', ...(hint ? { hint } : {}) })
  for (const [column, target] of Object.entries(said)) {
    if (!file.header.includes(column))
      wrong(column, 'the file has no such column', `its columns are ${file.header.join(', ')}`.slice(0, 500))
    if (target !== null && !targetOf(targets, target))
      wrong(column, `${target} cannot be written`, `fields are ${[...targets.byName.keys()].join(', ')}`)
  }
  const taken = new Set(Object.values(said))
  const settled = Object.fromEntries(
    file.header.map((column): [string, string | null] => {
      if (Object.hasOwn(said, column)) return [column, said[column]!]
      // A proposal gives way to what was said.
      const proposed = file.proposed[column] ?? null
      return [column, proposed !== null && taken.has(proposed) ? null : proposed]
    }),
  )
  const columnOf = new Map<string, string>()
  for (const [column, target] of Object.entries(settled)) {
    if (target === null) continue
    const other = columnOf.get(target)
    if (other !== undefined) wrong(column, `${other} becomes ${target} already`)
    columnOf.set(target, column)
  }
  for (const msg of missing(row, columnOf)) issues.push({ loc: ['body', 'mapping'], msg, type: 'missing' })
  if (issues.length > 0) throw invalid(issues)
  return settled
}

/** Fields without which no row could be written. */
function missing({ entity, mode, upsert_by }: ImportRow, columnOf: Map<string, string>): string[] {
  if (mode === 'upsert')
    return columnOf.has(upsert_by!) ? [] : [`no column becomes ${upsert_by}, by which records are found`]
  const { fields, atLeastOneOf } = entities[entity]
  const absent = Object.entries(fields)
    .filter(([name, field]) => field.required && field.default === undefined && !columnOf.has(name))
    .map(([name]) => `no column becomes ${name}, which is required`)
  const some = atLeastOneOf?.some((name) => columnOf.has(name) || columnOf.has('full_name')) ?? true
  return some ? absent : [...absent, `no column becomes one of ${atLeastOneOf!.join(', ')}`]
}
