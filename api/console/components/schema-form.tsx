import type { ComponentChildren } from 'preact'
import type { FormErrors } from '../forms/errors.ts'
import { NO_ERRORS } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import type { Form } from '../forms/form.ts'
import { STORED_FIELD } from '../forms/to-body.ts'
import { ErrorSummary, Field, type FieldValue } from './field.tsx'
import { PostForm } from './post-form.tsx'

/** The texts of a form: those that were typed, else those of the stored or initial values. */
export interface FormState {
  typed?: Form | undefined
  errors?: FormErrors | undefined
  stored?: Record<string, string> | undefined
}

/** A form of fields from a schema. */
export function SchemaForm(props: {
  action: string
  fields: readonly FieldSpec[]
  state?: FormState
  options?: Record<string, readonly { id: string; name: string }[]>
  button: string
  cancel?: string
  label: string
  /** Further fields, before the button. */
  children?: ComponentChildren
}) {
  const { action, fields, state = {}, options = {}, button, cancel, label, children } = props
  const errors = state.errors ?? NO_ERRORS
  return (
    <PostForm action={action} class="form" label={label}>
      {state.stored && <input type="hidden" name={STORED_FIELD} value={JSON.stringify(state.stored)} />}
      <ErrorSummary errors={errors} labels={new Map(fields.map((field) => [field.name, field.label]))} />
      {fields.map((spec) => (
        <Field
          key={spec.name}
          spec={spec}
          value={shownIn(spec, state)}
          errors={errors.byField.get(spec.name)}
          options={options[spec.name]}
        />
      ))}
      {children}
      <div class="form-actions">
        <button type="submit" class="button primary">
          {button}
        </button>
        {cancel && (
          <a class="button plain" href={cancel}>
            Cancel
          </a>
        )}
      </div>
    </PostForm>
  )
}

function shownIn(spec: FieldSpec, { typed, stored }: FormState): FieldValue {
  if (typed) return { text: typed.get(spec.name), all: typed.all(spec.name) }
  const text = stored?.[spec.name]
  if (text !== undefined) return { text, all: text.split('\n') }
  return { text: textOf(spec.initial) }
}

/** A value as the text of its field. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.map(textOf).join('\n')
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, one]) => `${name}: ${textOf(one)}`)
      .join('\n')
  return String(value)
}
