import { type FieldKind, type FieldSpec, labelOf } from '../forms/field-spec.ts'
import type { RecordRow, RecordSchema } from './record.ts'

const ADDRESS = ['line1', 'line2', 'city', 'state', 'postal_code', 'country']

const KINDS: Record<string, FieldKind> = {
  integer: 'integer',
  number: 'number',
  boolean: 'boolean',
  date: 'date',
  datetime: 'datetime',
  enum: 'choice',
  select: 'choice',
  multi_select: 'choices',
  tags: 'lines',
  emails: 'lines',
  phones: 'lines',
  reference: 'reference',
  user: 'choice',
  email: 'email',
  phone: 'phone',
  url: 'url',
  json: 'json',
}

/** Text with a greater limit gets several lines. */
const LONG = 2_048

/** The fields of the form of a record, from the schema of its kind: also the defined custom fields. */
export function recordFields({ fields, custom_fields }: RecordSchema): FieldSpec[] {
  const base = { references: undefined, nullable: true, initial: null, max: undefined, choices: [] }
  const own = fields
    .filter(({ read_only, type }) => !read_only && type !== 'custom_fields')
    .flatMap((field): FieldSpec[] => {
      const { name, type, description, required, values, max, references } = field
      if (type === 'address')
        return ADDRESS.map((part) => ({
          ...base,
          name: `${name}.${part}`,
          label: labelOf(part),
          help: '',
          type: 'text',
          required: false,
        }))
      const kind = KINDS[type] ?? (type === 'text' && (max ?? 0) > LONG ? 'long_text' : 'text')
      return [
        {
          ...base,
          name,
          label: labelOf(name),
          help: [description, kind === 'lines' && 'One per line.'].filter(Boolean).join(' '),
          type: kind,
          choices: values ?? [],
          required,
          max: max ?? undefined,
          references: references ?? undefined,
          nullable: kind !== 'lines',
        },
      ]
    })
  const custom = custom_fields.map(
    (field): FieldSpec => ({
      ...base,
      name: `custom_fields.${field.name}`,
      label: field.label,
      help: field.description ?? '',
      type: KINDS[field.type] ?? 'text',
      choices: field.options ?? [],
      required: field.required,
    }),
  )
  return [...own, ...custom]
}

/** The stored values as the texts of the form. Times are in the organization's zone, as the API reads them. */
export function textsOf(
  fields: readonly FieldSpec[],
  record: RecordRow,
  { names, timezone }: { names: Map<string, string>; timezone: string },
): Record<string, string> {
  return Object.fromEntries(
    fields.map(({ name, type, references }) => {
      const value = name
        .split('.')
        .reduce<unknown>((at, part) => (at as Record<string, unknown> | null)?.[part], record)
      if (value === null || value === undefined) return [name, '']
      if (type === 'datetime') return [name, localTime(String(value), timezone)]
      if (type === 'reference' && references) return [name, names.get(String(value)) ?? String(value)]
      if (Array.isArray(value)) return [name, value.join('\n')]
      return [name, typeof value === 'object' ? JSON.stringify(value) : String(value)]
    }),
  )
}

/** `2026-01-31T09:00:00` in a time zone, for `datetime-local`. */
export function localTime(at: string, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'medium',
  }).format(new Date(at))
  return parts.replace(' ', 'T')
}
