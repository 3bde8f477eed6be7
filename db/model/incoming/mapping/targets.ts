import { fieldName } from '../../records/custom-fields/shape.ts'
import { ADDRESS_PARTS } from '../../records/field-types.ts'
import type { Field } from '../../records/kind.ts'
import { kinds } from '../../records/kinds/index.ts'
import type { TargetKind } from '../types.ts'

/** The field of the kind. */
export function fieldOf(name: string, kind: TargetKind): Field | undefined {
  const { fields } = kinds[kind]
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

/** Whether records of the kind have a company, which is found or created by name. */
export const belongsToCompany = (kind: TargetKind): boolean => fieldOf('company_id', kind) !== undefined

/** The names that a rule can write to, besides `custom_fields.<name>`. */
export function targetNames(kind: TargetKind): string[] {
  const fields = Object.entries(kinds[kind].fields)
  return [
    ...fields.filter(([, field]) => isWritable(field)).map(([name]) => name),
    ...(fieldOf('address', kind) ? ADDRESS_PARTS.map((part) => `address.${part}`) : []),
    'tags',
    'external_id',
    'note_content',
    ...(belongsToCompany(kind) ? ['company_name'] : []),
  ]
}

const isWritable = ({ type, readOnly }: Field) =>
  !readOnly && !['address', 'reference', 'user'].includes(type)

/** Whether a rule can write to the field `to`. */
export const isTarget = (to: string, kind: TargetKind): boolean =>
  targetNames(kind).includes(to) || customFieldOf(to) !== undefined

/** The name in `custom_fields.<name>`. */
export function customFieldOf(to: string): string | undefined {
  if (!to.startsWith(CUSTOM)) return undefined
  const name = to.slice(CUSTOM.length)
  return fieldName.safeParse(name).success ? name : undefined
}

const CUSTOM = 'custom_fields.'

/** Text as the type of its field. Invalid text is unchanged, and validation reports it. */
export function typed(text: string, field: Field | undefined): unknown {
  if (field?.type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text)
  if (field?.type === 'boolean' && /^(true|yes|on|1)$/i.test(text)) return true
  if (field?.type === 'boolean' && /^(false|no|off|0)$/i.test(text)) return false
  return text
}
