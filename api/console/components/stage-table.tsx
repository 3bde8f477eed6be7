import type { Stage } from '../../../db/model/records/pipelines/pipeline.ts'
import type { FormErrors } from '../forms/errors.ts'
import type { FieldSpec } from '../forms/field-spec.ts'
import type { StageRow } from '../records/stage-rows.ts'
import { Scrollable } from './scrollable.tsx'

/** The stages of a pipeline as a table of fields, one stage a row. */
export function StageTable(props: {
  rows: readonly StageRow[]
  fields: readonly FieldSpec[]
  /** Those that are stored, to which deals can go. */
  stages: readonly Stage[]
  errors: FormErrors
}) {
  const { rows, fields, stages, errors } = props
  let sent = -1
  return (
    <Scrollable class="table" label="Stages">
      <table class="inputs">
        <thead>
          <tr>
            <th scope="col">Order</th>
            {fields.map(({ name, label }) => (
              <th scope="col" key={name}>
                {name === 'probability' ? `${label} (%)` : label}
              </th>
            ))}
            <th scope="col">Remove</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => {
            if (row.isSent) sent++
            const place = row.isSent ? `stages.${sent}` : undefined
            return (
              <Row
                key={row.name || i}
                row={row}
                i={i}
                fields={fields}
                stages={stages}
                place={place}
                errors={place ? errors.byField.get(place) : undefined}
              />
            )
          })}
        </tbody>
      </table>
    </Scrollable>
  )
}

function Row(props: {
  row: StageRow
  i: number
  fields: readonly FieldSpec[]
  stages: readonly Stage[]
  /** Its place in the body, by which the list of errors names it. */
  place: string | undefined
  errors: readonly string[] | undefined
}) {
  const { row, i, fields, stages, place, errors } = props
  const of = row.label || row.name || `new stage ${i + 1}`
  return (
    <tr class={errors ? 'field invalid' : ''}>
      <td>
        <input type="hidden" name="stage.stored" value={row.isStored ? '1' : '0'} />
        <input
          type="text"
          inputMode="numeric"
          class="short"
          name="stage.order"
          value={row.order}
          aria-label={`Order of ${of}`}
        />
      </td>
      {fields.map((spec) => (
        <td key={spec.name}>
          <Cell
            spec={spec}
            row={row}
            of={of}
            id={spec.name === 'label' && place ? `f-${place}` : undefined}
          />
          {spec.name === 'label' && errors && <p class="error">{errors.join('. ')}</p>}
        </td>
      ))}
      <td>
        {row.isStored ? (
          <select name="stage.becomes" aria-label={`Whether to remove ${of}`}>
            <option value="">keep</option>
            <option value="remove" selected={row.becomes === 'remove'}>
              remove: it has no deals
            </option>
            {stages
              .filter(({ name }) => name !== row.name)
              .map(({ name, label }) => (
                <option value={name} selected={row.becomes === name} key={name}>
                  {`deals go to ${label}`}
                </option>
              ))}
          </select>
        ) : (
          <input type="hidden" name="stage.becomes" value="" />
        )}
      </td>
    </tr>
  )
}

function Cell({
  spec: { name, label, choices, type },
  row,
  of,
  id,
}: {
  spec: FieldSpec
  row: StageRow
  of: string
  id: string | undefined
}) {
  const text = row[name as 'label' | 'name' | 'probability' | 'outcome' | 'required_fields']
  const common = { name: `stage.${name}`, 'aria-label': `${label} of ${of}`, id }
  if (type === 'choice')
    return (
      <select {...common}>
        {!row.isStored && <option value="">–</option>}
        {choices.map((choice) => (
          <option value={choice} selected={choice === text} key={choice}>
            {choice}
          </option>
        ))}
      </select>
    )
  return (
    <input
      {...common}
      type="text"
      class={name === 'probability' ? 'short' : ''}
      inputMode={name === 'probability' ? 'numeric' : undefined}
      readOnly={name === 'name' && row.isStored}
      value={text}
      dir="auto"
    />
  )
}
