import type { ComponentChildren } from 'preact'
import type { FieldSpec } from '../forms/field-spec.ts'

/** What a field shows: the text of the form, or of the stored value. */
export interface FieldValue {
  text: string
  /** All values of a field that has several. */
  all?: readonly string[]
}

interface FieldProps {
  spec: FieldSpec
  value: FieldValue
  errors?: readonly string[] | undefined
  /** The options of a reference: the id and the name. */
  options?: readonly { id: string; name: string }[] | undefined
  autofocus?: boolean
}

/** A labelled field with its help and its errors, which screen readers read with it. */
export function Field({ spec, value, errors = [], options, autofocus }: FieldProps) {
  const id = `f-${spec.name}`
  const described = [spec.help && `${id}-help`, errors.length > 0 && `${id}-error`].filter(Boolean).join(' ')
  const common = {
    id,
    name: spec.name,
    required: spec.required,
    'aria-describedby': described || undefined,
    'aria-invalid': errors.length > 0 || undefined,
    autofocus,
  }
  const isBox = spec.type === 'boolean' && spec.initial !== undefined && spec.initial !== null
  return (
    <div class={errors.length > 0 ? 'field invalid' : 'field'}>
      {isBox ? (
        <label class="box">
          <input type="hidden" name={`${spec.name}:has`} value="1" />
          <input type="checkbox" value="true" checked={value.text === 'true'} {...common} required={false} />
          {spec.label}
        </label>
      ) : (
        <>
          <label for={id}>
            {spec.label}
            {spec.required && <span class="required"> required</span>}
          </label>
          {control(spec, value, common, options)}
        </>
      )}
      {spec.help && (
        <p class="help" id={`${id}-help`}>
          <Marked text={spec.help} />
        </p>
      )}
      {errors.length > 0 && (
        <p class="error" id={`${id}-error`}>
          {errors.join('. ')}
        </p>
      )}
    </div>
  )
}

type InputType = 'password' | 'text' | 'tel' | 'date' | 'datetime-local'

const INPUT_TYPES: Partial<Record<FieldSpec['type'], InputType>> = {
  secret: 'password',
  email: 'text',
  url: 'text',
  phone: 'tel',
  date: 'date',
  datetime: 'datetime-local',
}

function control(
  spec: FieldSpec,
  value: FieldValue,
  common: Record<string, unknown>,
  options: FieldProps['options'],
): ComponentChildren {
  if (spec.type === 'choice' || spec.type === 'boolean' || options) {
    const choices = options ?? choicesOf(spec).map((choice) => ({ id: choice, name: choice }))
    const isKnown = value.text === '' || choices.some(({ id }) => id === value.text)
    return (
      <select {...common}>
        {!spec.required && <option value="">–</option>}
        {!isKnown && (
          <option value={value.text} selected>
            {value.text}
          </option>
        )}
        {choices.map((choice) => (
          <option key={choice.id} value={choice.id} selected={choice.id === value.text}>
            {choice.name}
          </option>
        ))}
      </select>
    )
  }
  if (spec.type === 'choices') {
    const size = Math.min(8, Math.max(3, spec.choices.length))
    return (
      <select {...common} multiple size={size}>
        {spec.choices.map((choice) => (
          <option key={choice} value={choice} selected={value.all?.includes(choice) ?? false}>
            {choice}
          </option>
        ))}
      </select>
    )
  }
  if (['long_text', 'lines', 'numbers', 'pairs', 'json'].includes(spec.type))
    return (
      <textarea
        {...common}
        rows={spec.type === 'long_text' ? 5 : 3}
        class={spec.type === 'long_text' ? '' : 'mono'}
      >
        {/* Browsers drop the first line break of a textarea. */}
        {value.text.startsWith('\n') ? `\n${value.text}` : value.text}
      </textarea>
    )
  const mode = spec.type === 'integer' ? 'numeric' : spec.type === 'number' ? 'decimal' : undefined
  const attributes = {
    ...common,
    type: INPUT_TYPES[spec.type] ?? 'text',
    value: value.text,
    inputMode: mode,
    step: spec.type === 'datetime' ? 1 : undefined,
    'data-lookup': spec.type === 'reference' ? spec.references : undefined,
    autocomplete: spec.type === 'reference' ? 'off' : undefined,
    dir: 'auto',
  }
  return <input {...(attributes as object)} />
}

const choicesOf = ({ type, choices }: FieldSpec) => (type === 'boolean' ? ['true', 'false'] : choices)

/** Text with `code` in backticks, as the descriptions of the API have it. */
export function Marked({ text }: { text: string }) {
  const plain = text.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
  return <>{plain.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>
}

/** The list at the top of a refused form, which takes the focus: what is wrong, and where. */
export function ErrorSummary({
  errors,
  labels,
}: {
  errors: { byField: Map<string, string[]>; others: string[] }
  labels: Map<string, string>
}) {
  if (errors.byField.size === 0 && errors.others.length === 0) return null
  return (
    <div class="notice red" role="alert" tabIndex={-1} data-focus>
      <p>Not saved:</p>
      <ul>
        {errors.others.map((text) => (
          <li key={text}>{text}</li>
        ))}
        {[...errors.byField].map(([name, texts]) => (
          <li key={name}>
            <a href={`#f-${name}`}>{labels.get(name) ?? name}</a>: {texts.join('. ')}
          </li>
        ))}
      </ul>
    </div>
  )
}
