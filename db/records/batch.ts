import { AppError, type Issue } from '../model/errors.ts'
import type { KindName } from '../model/records/kind.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { createMany } from './create.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { type Deleted, deleteRecord } from './delete.ts'
import { finderBy } from './find-by-key.ts'
import { lockLives, lockRecords, lockReferencesTo } from './lock.ts'
import { type Outcome, settle } from './sets.ts'
import { updateMany } from './update.ts'
import { type Upsert, upsertMany } from './upsert.ts'

/** An operation of a batch, as the schemas parsed it. */
export type Operation =
  | { op: 'create'; data: RecordInput }
  | { op: 'update'; id: string; version?: number | undefined; data: RecordInput }
  | { op: 'upsert'; by: string; patch: RecordInput; input: Upsert['input'] }
  | { op: 'delete'; id: string; version?: number | undefined }
  /** An invalid operation. `wanted` is its `op`, if that is valid. */
  | { op: 'refused'; wanted: string | null; error: AppError }

export type Result = Outcome | { deleted: Deleted }

/**
 * Runs operations on one kind in order, consecutive operations of the same type together. A failed operation does not
 * stop the others, unless the batch is `atomic`: then it throws a `validation_error` that lists the failures, and the
 * transaction must be rolled back.
 */
export async function batch(
  tx: Tenant,
  kind: KindName,
  operations: Operation[],
  atomic: boolean,
): Promise<Result[]> {
  if (atomic) refuse(operations.map((step) => (step.op === 'refused' ? step : undefined)))
  await lockAll(tx, kind, operations)
  const results: (Result | undefined)[] = new Array(operations.length)
  for (const places of runsOf(operations)) {
    const run = places.map((place) => operations[place]!)
    for (const [i, result] of (await perform(tx, kind, run)).entries()) results[places[i]!] = result
    if (atomic) refuse(results)
  }
  return results as Result[]
}

type Of<Op> = Extract<Operation, { op: Op }>

/** The indexes of consecutive operations that can run together. */
function runsOf(steps: Operation[]): number[][] {
  const runs: number[][] = []
  for (const [place, step] of steps.entries()) {
    const last = place > 0 && typeOf(steps[place - 1]!) === typeOf(step) ? runs.at(-1) : undefined
    if (last) last.push(place)
    else runs.push([place])
  }
  return runs
}

const typeOf = (step: Operation): string => (step.op === 'upsert' ? `upsert ${step.by}` : step.op)

/** `run`: operations of the same type. */
async function perform(tx: Tenant, kind: KindName, run: Operation[]): Promise<Result[]> {
  if (allAre(run, 'create')) {
    const inputs = run.map(({ data }) => data)
    return (await createMany(tx, kind, inputs)).map(inData)
  }
  if (allAre(run, 'update')) {
    const updates = run.map(({ id, version, data }) => ({ id, patch: data, ifVersion: accepted(version) }))
    return (await updateMany(tx, kind, updates)).map(inData)
  }
  if (allAre(run, 'upsert')) {
    const outcomes = await settle(() => upsertMany(tx, kind, run[0]!.by, run))
    return 'error' in outcomes ? run.map(() => outcomes) : outcomes.map(inData)
  }
  const results: Result[] = []
  for (const step of run)
    if (step.op === 'delete') results.push(await settle(() => remove(tx, kind, step)))
    else if (step.op === 'refused') results.push({ error: step.error })
  return results
}

const allAre = <Op extends Operation['op']>(run: Operation[], op: Op): run is Of<Op>[] =>
  run.every((step) => step.op === op)

async function remove(tx: Tenant, kind: KindName, { id, version }: Of<'delete'>): Promise<Result> {
  const options = { ifVersion: accepted(version) }
  return { deleted: await savepoint(tx, (tx) => deleteRecord(tx, kind, id, options)) }
}

const accepted = (version: number | undefined) => (version === undefined ? undefined : [version])

/** Locks all records of a batch of several runs before the first run, in the order of lock.ts. */
async function lockAll(tx: Tenant, kind: KindName, steps: Operation[]): Promise<void> {
  if (runsOf(steps).length === 1 && !allAre(steps, 'delete')) return
  if (steps.some((step) => step.op === 'delete')) await lockLives(tx)
  const ids = steps.flatMap((step) => ('id' in step ? step.id : []))
  const upserts = steps.filter((step) => step.op === 'upsert')
  for (const by of [...new Set(upserts.map((step) => step.by))].sort()) {
    const finder = await settle(() => finderBy(tx, kind, by))
    // This error will fail the run of these upserts.
    if ('error' in finder) continue
    const keys = upserts.flatMap((step) => (step.by === by && finder.keyOf(step.patch)) || [])
    const found = await finder.find(keys)
    for (const matches of found.values()) ids.push(...matches)
  }
  await lockFieldRules(tx, kind)
  const deleted = steps.flatMap((step) => (step.op === 'delete' ? step.id : []))
  if (deleted.length === 0) await lockRecords(tx, kind, ids)
  else {
    await lockReferencesTo(tx, kind, deleted, ids)
    await lockRecords(tx, kind, deleted, 'for update')
  }
}

/** Moves the issues of a record into its operation: `["body", "email"]` becomes `["body", "data", "email"]`. */
function inData(result: Outcome): Outcome {
  if (!('error' in result) || !result.error.details.issues) return result
  const { type, message, details } = result.error
  const issues = details.issues!.map((issue) => ({ ...issue, loc: ['body', 'data', ...issue.loc.slice(1)] }))
  return { error: new AppError(type, message, { ...details, issues }) }
}

/** Throws one error for all failed operations. */
function refuse(results: (Result | { error: AppError } | undefined)[]): void {
  const failed = results.flatMap((result, index) =>
    result && 'error' in result ? [{ index, error: result.error }] : [],
  )
  if (failed.length === 0) return
  const issues = failed.flatMap(({ index, error }) => issuesAt(index, error))
  const { index, error } = failed[0]!
  const { candidates, merged_into, hint } = error.details
  throw new AppError('validation_error', `operation ${index}: ${error.message}; nothing was written`, {
    issues,
    param: `operations[${index}]`,
    ...(hint ? { hint } : {}),
    ...(candidates ? { candidates } : {}),
    ...(merged_into ? { merged_into } : {}),
  })
}

/** The issues of an operation, located in the batch: `["body", "operations", 2, "data", "email"]`. */
export function issuesAt(index: number, error: AppError): Issue[] {
  const at = ['body', 'operations', index]
  const { issues, param } = error.details
  if (issues) return issues.map((issue) => ({ ...issue, loc: [...at, ...issue.loc.slice(1)] }))
  return [
    { loc: [...at, ...(param ? ['data', ...param.split('.')] : [])], msg: error.message, type: error.type },
  ]
}
