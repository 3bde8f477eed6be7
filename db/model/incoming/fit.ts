import { AppError, type Issue } from '../errors.ts'
import type { Rules } from '../records/custom-fields/types.ts'
import { preparedCustomFields } from '../records/custom-fields/values.ts'
import { placeIssues } from '../records/pipelines/pipeline.ts'
import { createSchema, updateSchema } from '../records/schemas.ts'
import { type Checked, check } from '../validate.ts'
import { updatesBy } from './mapping/record-key.ts'
import type { Mapped } from './mapping/types.ts'
import { entityOf } from './target-entity.ts'
import type { IncomingWebhook, TargetKind } from './types.ts'

type TargetConfig = Pick<IncomingWebhook, 'kind' | 'field_mapping' | 'deduplication'>

/** The mapping with valid values. Throws validation_error with everything that is wrong with it. */
export function fitted(webhook: TargetConfig, mapped: Mapped): Mapped {
  const fit = fitMapped(webhook, mapped)
  if (!('issues' in fit)) return fit.mapped
  throw new AppError('validation_error', reason(webhook, mapped), { issues: fit.issues })
}

/** Why a mapping that only updates makes no record where there is none. */
export function noNewRecord(kind: TargetKind, mapped: Mapped): AppError {
  const checked = check(createSchema(kind), mapped.fields, 'body')
  const issues = 'issues' in checked ? checked.issues : []
  const missing = `no ${entityOf(kind)} has this ${mapped.updates_by}, and the payload does not map to a new one`
  return new AppError('validation_error', missing, { issues })
}

function reason(
  { kind }: Pick<TargetConfig, 'kind'>,
  { fields, company_name, warnings = [] }: Mapped,
): string {
  const because = warnings.length > 0 ? `: ${warnings.join('; ')}` : ''
  if (Object.keys(fields).length > 0 || company_name !== undefined)
    return `the payload does not map to a valid record${because}`
  return `the payload has nothing of a ${entityOf(kind)}${because}`
}

/**
 * The mapping with the values of a valid new record, or of the update of one that it names by a key only; or the issues of
 * the record and of the company that it names. A value that automatic mapping guessed and that does not fit is left out
 * with a warning, unless the record is invalid without it; a value of a rule is an issue.
 */
export function fitMapped(webhook: TargetConfig, mapped: Mapped): { mapped: Mapped } | { issues: Issue[] } {
  const { kind, field_mapping } = webhook
  if (kind === 'none' || mapped.skip !== undefined) return { mapped }
  const settings = { ...webhook, kind }
  const by = updatesBy(settings, mapped)
  const checked = checkMapped(kind, mapped, by)
  if (!('issues' in checked)) return { mapped: withFields(mapped, checked.value, by) }
  if (field_mapping.mode === 'manual') return checked
  const rest = leaveOut(mapped, checked.issues)
  // What was left out may be the key, or a name: then it is no update either.
  const restBy = by && updatesBy(settings, rest)
  const again = checkMapped(kind, rest, restBy)
  if (!('issues' in again)) return { mapped: withFields(rest, again.value, restBy) }
  const named = new Set(checked.issues.map(({ loc }) => loc[1]))
  return { issues: [...checked.issues, ...again.issues.filter(({ loc }) => !named.has(loc[1]))] }
}

const withFields = (mapped: Mapped, value: unknown, by: string | undefined): Mapped => ({
  ...mapped,
  fields: value as Mapped['fields'],
  ...(by === undefined ? {} : { updates_by: by }),
})

/** The same for what the organization defines: custom fields, and the stages of deals. */
export function fitToRules(
  webhook: Pick<TargetConfig, 'field_mapping'>,
  rules: Rules,
  mapped: Mapped,
): { mapped: Mapped; issues: Issue[] } {
  const { fields } = mapped
  const given = (fields.custom_fields ?? {}) as Record<string, unknown>
  const { issues } = preparedCustomFields(rules, given)
  if (rules.pipelines) issues.push(...placeIssues(rules.pipelines, fields))
  if (webhook.field_mapping.mode === 'manual' || issues.length === 0) return { mapped, issues }
  const guessed = issues.filter(
    ({ loc: [, , part] }) => part === undefined || Object.hasOwn(given, String(part)),
  )
  // Without the pipeline, the stage may not fit either.
  return guessed.length > 0 ? fitToRules(webhook, rules, leaveOut(mapped, guessed)) : { mapped, issues }
}

/** `by`: the key of the record that it updates, if it makes none. */
function checkMapped(kind: TargetKind, { fields, company_name }: Mapped, by: string | undefined): Checked {
  const record = check(by === undefined ? createSchema(kind) : updateSchema(kind), fields, 'body')
  const company = company_name?.trim()
    ? check(createSchema('companies'), { name: company_name }, 'body')
    : undefined
  const issues = [
    ...('issues' in record ? record.issues : []),
    ...(company && 'issues' in company
      ? company.issues.map((issue) => ({ ...issue, loc: ['body', 'company_name'] }))
      : []),
  ]
  return issues.length > 0 ? { issues } : record
}

/** The mapping without the values of some issues, with a warning for each. */
function leaveOut(mapped: Mapped, issues: Issue[]): Mapped {
  const fields = structuredClone(mapped.fields)
  const sources = { ...mapped.sources }
  const warnings = new Set(mapped.warnings ?? [])
  const unmapped = new Set(mapped.unmapped ?? [])
  const { company_name, ...others } = mapped
  let company = company_name
  // From the end, because the items of a list are removed by their index.
  for (const { loc, msg } of issues.toReversed()) {
    const [, field = '', part] = loc.map(String)
    const name = ['address', 'custom_fields'].includes(field) && part ? `${field}.${part}` : field
    const from = sources[name]
    const value = fields[field]
    if (field === 'company_name') company = undefined
    else if (part !== undefined && Array.isArray(value)) value.splice(Number(part), 1)
    else if (part !== undefined && typeof value === 'object' && value !== null)
      delete (value as Record<string, unknown>)[part]
    else delete fields[field]
    if (!(Array.isArray(value) && part !== undefined)) {
      delete sources[name]
      if (from) unmapped.add(from)
    }
    warnings.add(`${name}${from ? ` (from ${from})` : ''} was left out: ${msg}`)
  }
  return {
    ...others,
    ...(company === undefined ? {} : { company_name: company }),
    fields,
    sources,
    warnings: [...warnings],
    ...(unmapped.size > 0 ? { unmapped: [...unmapped] } : {}),
  }
}
