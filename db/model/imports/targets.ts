import type { CellType } from '../csv/read-cell.ts'
import { commonFields } from '../records/common-fields.ts'
import type { CustomFieldType, Definition, Rules } from '../records/custom-fields/types.ts'
import { ADDRESS_PARTS } from '../records/field-types.ts'
import { customName, isList } from '../records/filters.ts'
import { type Field, type FieldType, type KindName, referencesOf } from '../records/kind.ts'
import { kindNames, kinds } from '../records/kinds/index.ts'
import { namesOf, type Pipeline, stageNames } from '../records/pipelines/pipeline.ts'
import { singleKeys } from '../records/upsert-keys.ts'

/** Column of the file → field, `address.city`, `custom_fields.tier`, or null to ignore the column. */
export type Mapping = Record<string, string | null>

/** What a yes of a column says. */
export type Consent = 'opted_out' | 'opted_in'

/** Addresses or numbers of a contact, several in a cell or in several columns. */
export type Several = 'emails' | 'phones'

/** A time at which a deal is, or will be, won or lost: see close-time.ts. */
export type CloseTime = 'close_date' | 'won_at' | 'lost_at'

/** A possible target of a column. */
export interface Target {
  name: string
  /**
   * `tags`: a list; `full_name`: is split into first and last name; `company_name`: the company to link; `opted_out` and
   * `opted_in`: set `do_not_contact`, and never clear it; `close_date`, `won_at`, `lost_at`: set `closed_at`, if the
   * stage is such; `emails` and `phones`: the first of all is the contact's, others are its `other_emails` and
   * `other_phones`, and so are all of a column of that name; `user`: the
   * email or name of a user; `link`: records to link, by a key; `id`: that of the record which an upsert updates;
   * `outcome`: of a deal whose stage does not say that it is won or lost.
   */
  type:
    | CellType
    | 'tags'
    | 'full_name'
    | 'company_name'
    | Several
    | 'user'
    | 'link'
    | 'id'
    | 'outcome'
    | Consent
    | CloseTime
  /**
   * For a `link`: the kind of the records, a key by which `finderBy` finds them, and the reference field that the first
   * of them fills.
   */
  link?: { kind: KindName; by: string; field?: string }
  /** Several columns may have it. */
  isShared?: true
  choices?: readonly string[]
  /** For a close time: they tell whether the stage of the deal is won or lost. For a stage or pipeline: its names. */
  pipelines?: readonly Pipeline[]
  /** The label of a custom field. */
  label?: string
  /** For a sensitive custom field: what is kept of the file shows none of its values. */
  sensitive?: true
}

/** The columns of a header that are written to sensitive fields. */
export const sensitiveColumns = (header: string[], mapping: Mapping, { byName }: Targets): boolean[] =>
  header.map((column) => byName.get(mapping[column] ?? '')?.sensitive === true)

const CELL_TYPES: Partial<Record<FieldType, Target['type']>> = {
  integer: 'integer',
  money: 'money',
  decimal: 'decimal',
  boolean: 'boolean',
  date: 'date',
  datetime: 'datetime',
  enum: 'choice',
  user: 'user',
  emails: 'emails',
  phones: 'phones',
}

/** All possible targets of columns. */
export interface Targets {
  byName: Map<string, Target>
  /** Whether custom fields without a definition are allowed. */
  open: boolean
}

/** The targets of a kind whose custom fields have these rules. `by`: the upsert key. */
export function targetsOf(
  kind: KindName,
  { definitions, strict, pipelines = [] }: Rules,
  by?: string | null,
): Targets {
  const { fields } = kinds[kind]
  const native = Object.entries({ ...fields, created_at: commonFields.created_at as Field }).filter(
    ([, field]) => !field.readOnly || field.backdated,
  )
  const all: Target[] = [
    ...native.flatMap(([name, field]) => nativeTargets(name, field, pipelines)),
    ...(by === 'id' ? [{ name: 'id', type: 'id' } as const] : []),
    { name: 'external_id', type: 'text' },
    { name: 'owner_id', type: 'user' },
    { name: 'tags', type: 'tags' },
    ...(kind === 'contacts' ? [FULL_NAME, OPTED_OUT, OPTED_IN, EMAILS, PHONES] : []),
    ...linkTargets(kind),
    ...('company_id' in fields ? [COMPANY_NAME] : []),
    ...('outcome' in fields ? [{ name: 'outcome', type: 'outcome', pipelines } as const] : []),
    ...('closed_at' in fields ? CLOSE_TIMES.map((target) => ({ ...target, pipelines })) : []),
    ...Object.entries(definitions).map(([name, definition]) => customTarget(name, definition)),
  ]
  return { byName: new Map(all.map((target) => [target.name, target])), open: !strict }
}

const FULL_NAME: Target = { name: 'full_name', type: 'full_name' }
const OPTED_OUT: Target = { name: 'opted_out', type: 'opted_out', isShared: true }
const OPTED_IN: Target = { name: 'opted_in', type: 'opted_in', isShared: true }
const EMAILS: Target = { name: 'emails', type: 'emails', isShared: true }
const PHONES: Target = { name: 'phones', type: 'phones', isShared: true }
const CLOSE_TIMES: Target[] = (['close_date', 'won_at', 'lost_at'] as const).map((name) => ({
  name,
  type: name,
}))
const COMPANY_NAME: Target = { name: 'company_name', type: 'company_name' }

/**
 * `company_external_id`, `contact_email`, `deal_id`: the keys of the kinds to which reference fields point, and of all
 * others, which are associated.
 */
export function linkTargets(kind: KindName): Target[] {
  const references = referencesOf(kinds[kind])
  const targets = (prefix: string, to: KindName, keys: string[], field?: string) =>
    keys.map(
      (by): Target => ({
        name: `${prefix}_${by}`,
        type: 'link',
        link: { kind: to, by, ...(field && { field }) },
      }),
    )
  return [
    ...references.flatMap(([field, { to }]) =>
      targets(field.replace(/_id$/, ''), to, [...nameKey(to), ...singleKeys(to)], field),
    ),
    ...kindNames
      .filter((to) => to !== kind && !references.some(([field]) => field === `${kinds[to].object}_id`))
      .flatMap((to) => targets(kinds[to].object, to, ['id', ...nameKey(to), ...singleKeys(to)])),
  ]
}

const nameKey = (kind: KindName) => (kinds[kind].isFoundByName ? ['name'] : [])

export function targetOf({ byName, open }: Targets, name: string): Target | undefined {
  return byName.get(name) ?? (open && customName(name) !== undefined ? { name, type: 'any' } : undefined)
}

function nativeTargets(name: string, field: Field, pipelines: readonly Pipeline[]): Target[] {
  if (field.type === 'address')
    return ADDRESS_PARTS.map((part) => ({ name: `${name}.${part}`, type: 'text' }))
  const own = name === 'pipeline' ? namesOf(pipelines) : stageNames(pipelines)
  const values = field.ofOrganization ? own : field.values
  const choices = values ? { choices: values } : {}
  const type = field.percent ? 'percent' : (CELL_TYPES[field.type] ?? 'text')
  const isShared = isList(type)
  return [
    { name, type, ...choices, ...(field.ofOrganization && { pipelines }), ...(isShared && { isShared }) },
  ]
}

const CUSTOM_TYPES: Record<CustomFieldType, CellType> = {
  text: 'text',
  number: 'number',
  boolean: 'boolean',
  date: 'date',
  datetime: 'datetime',
  select: 'choice',
  multi_select: 'choices',
  url: 'text',
  email: 'text',
  phone: 'text',
  json: 'json',
}

function customTarget(name: string, { type, label, options, sensitive }: Definition): Target {
  const choices = options ? { choices: options } : {}
  return {
    name: `custom_fields.${name}`,
    label,
    type: CUSTOM_TYPES[type],
    ...choices,
    ...(sensitive && { sensitive }),
  }
}
