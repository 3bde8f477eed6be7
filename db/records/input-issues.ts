import { z } from 'zod'
import type { Issue } from '../model/errors.ts'
import { MAX_FIELDS } from '../model/records/custom-fields/shape.ts'
import type { Rules } from '../model/records/custom-fields/types.ts'
import {
  changedFields,
  preparedCustomFields,
  readCustomFields,
} from '../model/records/custom-fields/values.ts'
import { type KindName, referencesOf, userFields } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { placeIssues } from '../model/records/pipelines/pipeline.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { findRecord } from './read.ts'
import { referenceIssues } from './references.ts'

const id = z.uuid().toLowerCase()

const asObject = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined

/**
 * The issues of an input that only the database can find: custom fields that do not match their definitions, references
 * to records that do not exist. The input can have any shape, because its schema refused it: one response lists all
 * issues. `changes`: the id of the record to change; undefined for a new record.
 */
export async function inputIssues(
  tx: Tenant,
  kind: KindName,
  input: unknown,
  { changes, mayLink }: { changes?: string | undefined; mayLink: (to: KindName) => boolean },
): Promise<Issue[]> {
  const values = asObject(input)
  if (!values) return []
  const definition = kinds[kind]
  const fields = asObject(values.custom_fields ?? {})
  const rules = await lockFieldRules(tx, kind)
  // Too many fields are reported by the schema.
  const readable = fields && Object.keys(fields).length <= MAX_FIELDS
  const ofFields = readable ? await fieldIssues(tx, kind, rules, fields, changes) : []
  const references = referencesOf(definition).filter(([, { to }]) => mayLink(to))
  const names = [...userFields(definition), ...references.map(([name]) => name)]
  const ids = names.flatMap((name) => {
    const read = id.safeParse(values[name])
    return read.success ? [[name, read.data]] : []
  })
  const record = { id: '', version: 1, ...Object.fromEntries(ids) } as unknown as AgxRecord
  const ofReferences = await referenceIssues(tx, definition, [{ record }])
  const ofPlace = await stageIssues(tx, kind, rules, values, changes)
  return [...ofFields, ...ofPlace, ...(ofReferences.get(record.id) ?? [])]
}

async function stageIssues(
  tx: Tenant,
  kind: KindName,
  { pipelines }: Rules,
  { pipeline, stage }: Record<string, unknown>,
  changes: string | undefined,
): Promise<Issue[]> {
  const given = Object.entries({ pipeline, stage }).filter(([, value]) => typeof value === 'string')
  if (!pipelines || given.length === 0) return []
  const record = changes === undefined ? undefined : await findRecord(tx, kind, changes)
  return placeIssues(pipelines, {
    pipeline: record?.pipeline,
    stage: record?.stage,
    ...Object.fromEntries(given),
  })
}

async function fieldIssues(
  tx: Tenant,
  kind: KindName,
  rules: Rules,
  fields: Record<string, unknown>,
  changes: string | undefined,
): Promise<Issue[]> {
  if (changes === undefined) return preparedCustomFields(rules, fields).issues
  const record = await findRecord(tx, kind, changes)
  return readCustomFields(rules, changedFields(record?.custom_fields, fields)).issues
}
