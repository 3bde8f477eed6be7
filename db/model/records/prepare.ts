import { isDeepStrictEqual } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import type { Actor } from '../actor.ts'
import { isCutOf } from '../csv/cell-text.ts'
import { type Issue, invalid } from '../errors.ts'
import type { TraceContext } from '../trace-context.ts'
import { draftIssues } from './backdated.ts'
import { writableColumns } from './columns.ts'
import type { Rules } from './custom-fields/types.ts'
import { changedCustomFields, preparedCustomFields } from './custom-fields/values.ts'
import type { Kind } from './kind.ts'
import { type AgxRecord, REQUEST_TRACE, type RecordInput } from './schemas.ts'

/** Computes the stored values of a write, without the database. */

export interface Write {
  action: 'created' | 'updated' | 'deleted' | 'restored' | 'merged'
  /** The new version of the record. */
  record: AgxRecord
  /** By field: `{from, to}`. */
  changes: Record<string, unknown>
  /** The old values of the changed fields, for the event. */
  previous?: Record<string, unknown>
  /** The trace of the request, if it is not that of the transaction. */
  trace?: TraceContext | undefined
}

/**
 * `given`: parsed by `createSchema`, without associations and with the default currency. Throws `validation_error` for
 * custom fields that violate the rules.
 */
export function creation(actor: Actor, kind: Kind, given: RecordInput, rules: Rules): Write {
  const now = new Date().toISOString()
  const { fields, issues } = preparedCustomFields(rules, given.custom_fields)
  const next = { ...given, custom_fields: fields }
  const draft = { next, before: undefined, given, now, pipelines: rules.pipelines }
  requireValid([...draftIssues(kind, draft), ...issues])
  const values: RecordInput = { ...next, ...kind.derive?.({ ...draft, actor }) }
  const record = {
    object: kind.object,
    id: uuidv7(),
    ...Object.fromEntries(writableColumns(kind).map((column) => [column, values[column] ?? null])),
    tags: values.tags ?? [],
    alternate_keys: [],
    version: 1,
    created_at: given.created_at ?? now,
    updated_at: now,
    created_by: actor,
    updated_by: actor,
  } as AgxRecord
  const changes = Object.fromEntries(
    writableColumns(kind)
      .filter((column) => !isEmpty(record[column]))
      .map((column) => [column, { from: null, to: record[column] }]),
  )
  return { action: 'created', record, changes, trace: given[REQUEST_TRACE] }
}

/** The parts of a patch that are merged into the record's values instead of replacing them. */
export interface Adding {
  /** Address parts that the patch does not name stay unchanged. */
  addressParts?: true
  tags?: true
  /** A text that a workbook has cut leaves the whole one. */
  cutTexts?: true
}

/**
 * Applies a patch to the record's values: null clears, custom fields are merged key by key. `rules`: required if the
 * patch has custom fields. Throws `validation_error`.
 */
export function patched(
  kind: Kind,
  before: AgxRecord,
  patch: RecordInput,
  rules: Rules | undefined,
  adding: Adding = {},
): RecordInput {
  const next: RecordInput = { ...before, ...patch }
  if (rules && patch.custom_fields !== undefined)
    next.custom_fields = changedCustomFields(rules, before.custom_fields, patch.custom_fields)
  if (adding.tags && patch.tags)
    next.tags = [...new Set([...(before.tags as string[]), ...(patch.tags as string[])])]
  if (adding.addressParts)
    for (const [name, { type }] of Object.entries(kind.fields))
      if (type === 'address' && patch[name])
        next[name] = { ...(before[name] as object | null), ...(patch[name] as object) }
  if (adding.cutTexts)
    for (const [name, { type }] of Object.entries(kind.fields)) {
      const [own, given] = [before[name], patch[name]]
      if (type === 'text' && typeof own === 'string' && typeof given === 'string' && isCutOf(given, own))
        next[name] = own
    }
  return next
}

/** A change of at least one field, with the old values. */
export type Change = Write & { previous: Record<string, unknown> }

/**
 * `given`: the patch; `merged`: the result of `patched`, with the default currency; `rules`: required if the patch may
 * have a stage. @returns undefined if nothing changes. Throws `validation_error` if none of the fields of
 * `atLeastOneOf` would remain.
 */
export function change(
  actor: Actor,
  kind: Kind,
  before: AgxRecord,
  given: RecordInput,
  merged: RecordInput,
  rules?: Rules,
): Change | undefined {
  const now = new Date().toISOString()
  const draft = { next: merged, before, given, now, pipelines: rules?.pipelines }
  requireValid(draftIssues(kind, draft))
  const next: RecordInput = { ...merged, ...kind.derive?.({ ...draft, actor }) }
  next.created_at ??= before.created_at
  const columns = [...writableColumns(kind), 'alternate_keys', 'created_at']
  const values = Object.fromEntries(columns.map((column) => [column, next[column] ?? null]))
  const write = replacement(actor, kind, before, values, now)
  return write && { ...write, trace: given[REQUEST_TRACE] }
}

/**
 * The change that gives fields these values, derived ones too. @returns undefined if nothing changes. Throws
 * `validation_error` if none of the fields of `atLeastOneOf` would remain.
 */
export function replacement(
  actor: Actor,
  kind: Kind,
  before: AgxRecord,
  values: Record<string, unknown>,
  now?: string,
): Change | undefined {
  const changed = Object.keys(values).filter((name) => !isDeepStrictEqual(before[name], values[name]))
  if (changed.length === 0) return undefined
  const next: Record<string, unknown> = { ...before, ...values }
  if (kind.atLeastOneOf && !kind.atLeastOneOf.some((name) => next[name] != null))
    throw invalid([
      {
        loc: ['body', kind.atLeastOneOf[0]!],
        msg: `at least one of ${kind.atLeastOneOf.join(', ')} is required`,
        type: 'missing',
      },
    ])
  const replaced = Object.fromEntries(changed.map((name) => [name, values[name]]))
  const previous = Object.fromEntries(changed.map((name) => [name, before[name]]))
  return { ...nextVersion('updated', actor, before, replaced, now), previous }
}

function requireValid(issues: Issue[]): void {
  if (issues.length > 0) throw invalid(issues)
}

/** The next version of a record, with `values` replacing its own. */
export function nextVersion(
  action: Write['action'],
  actor: Actor,
  before: AgxRecord,
  values: Record<string, unknown> = {},
  now = new Date().toISOString(),
): Write {
  const { version } = before
  const changes = Object.entries(values).map(([name, to]) => [name, { from: before[name], to }])
  return {
    action,
    record: { ...before, ...values, version: version + 1, updated_at: now, updated_by: actor },
    changes: Object.fromEntries(changes),
  }
}

/** Whether a value is null, or a list or an object without members. */
export const isEmpty = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && Object.keys(value as object).length === 0)

/** The names of a write's events: `deal.updated`, and those that the kind adds, such as `deal.won`. */
export function eventsOf(kind: Kind, { action, record, previous }: Write): string[] {
  const changed = action === 'created' || action === 'updated' || action === 'merged'
  const before = action === 'created' ? undefined : { ...record, ...previous }
  const special = Object.entries(kind.events ?? {})
    .filter(([, { when }]) => changed && when(record, before))
    .map(([name]) => name)
  // `mergeRecords` adds the event `merged`, which names the loser.
  return [action === 'merged' ? 'updated' : action, ...special].map((name) => `${kind.object}.${name}`)
}
