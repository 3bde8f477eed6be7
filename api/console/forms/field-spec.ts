/** A field of a form, as its schema describes it. */
export interface FieldSpec {
  /** Where the value is in the body, and in `loc` of an issue: `email`, `address.city`, `custom_fields.tier`. */
  name: string
  label: string
  help: string
  type: FieldKind
  choices: readonly string[]
  required: boolean
  /** The longest text in characters. */
  max: number | undefined
  /** The kind of record that the id refers to, or `users`. */
  references: string | undefined
  /** Whether an empty list is null. */
  nullable: boolean
  /** The value of a new form. */
  initial: unknown
}

export type FieldKind =
  | 'text'
  | 'long_text'
  | 'secret'
  | 'email'
  | 'url'
  | 'phone'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'choices'
  | 'date'
  | 'datetime'
  /** One item a line. */
  | 'lines'
  | 'numbers'
  /** One `name: value` a line. */
  | 'pairs'
  | 'reference'
  | 'json'

/** `retry_schedule` as `Retry schedule`; the words that are written in capitals. */
export const labelOf = (name: string): string => {
  const words = (name.split('.').at(-1) ?? name).replace(/_id$/, '').replace(/_ms$/, ' (ms)').split('_')
  const text = words.map((word) => CAPITALS[word] ?? word).join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const CAPITALS: Record<string, string> = {
  id: 'ID',
  url: 'URL',
  ip: 'IP',
  linkedin: 'LinkedIn',
  at: 'at',
  allowlist: 'allowlist',
}
