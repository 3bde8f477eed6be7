import { targetsOf } from '../../../db/model/imports/targets.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Scrollable } from '../components/scrollable.tsx'
import { labelOf } from '../forms/field-spec.ts'
import type { RecordSchema } from '../records/record.ts'
import type { Import, ImportColumn, Refusal } from './shapes.ts'

/** Values of a column that are shown; others keep their proposal. */
const MOST_VALUES = 30

const FORMATS = {
  decimal: [
    ['.', '1,234.50'],
    [',', '1.234,50'],
  ],
  date: [
    ['dmy', 'day, month, year'],
    ['mdy', 'month, day, year'],
  ],
} as const

/** What each column of the file means, to be corrected; the trial and the start. */
export function MappingForm({
  one,
  schema,
  refusal,
}: {
  one: Import
  schema: RecordSchema
  refusal: Refusal
}) {
  const columns = one.file!.columns
  const typed = (name: string, otherwise: string) =>
    refusal.typed?.has(name) ? refusal.typed.get(name) : otherwise
  return (
    <Card title="Columns" flush>
      <PostForm action={`/imports/${one.id}/start`} class="mapping" label="Columns">
        <Targets one={one} schema={schema} />
        <Scrollable class="table" label="The columns of the file">
          <table>
            <thead>
              <tr>
                <th scope="col">Column of the file</th>
                <th scope="col">First values</th>
                <th scope="col">Field</th>
              </tr>
            </thead>
            <tbody>
              {columns.map((column, i) => (
                <tr key={column.name}>
                  <th scope="row" dir="auto" title={column.name}>
                    {column.name}
                    <input type="hidden" name={`column.${i}`} value={column.name} />
                  </th>
                  <td class="muted" dir="auto" title={column.samples.join(', ').slice(0, 500)}>
                    {column.samples.slice(0, 3).join(', ').slice(0, 80)}
                  </td>
                  <td>
                    <ColumnFields
                      column={column}
                      i={i}
                      field={typed(`field.${i}`, fieldOf(one, column))}
                      typed={typed}
                      errors={refusal.byColumn?.get(column.name) ?? []}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrollable>
        <div class="form mapping-end">
          <p class="help">
            A column without a field is not imported. <code>custom_fields.name</code> is a field of your own.
          </p>
          {one.entity === 'deals' && (
            <label class="box">
              <input type="hidden" name="create_stages:has" value="1" />
              <input
                type="checkbox"
                name="create_stages"
                value="true"
                checked={
                  typed('create_stages:has', '') ? typed('create_stages', '') === 'true' : one.create_stages
                }
              />
              Create stages that the file names and your pipelines do not have
            </label>
          )}
          <div class="form-actions">
            <Button look="primary" name="do" value="try">
              Try it without a change
            </Button>
            <Button name="do" value="start">
              Import {one.file!.rows.toLocaleString('en')} rows
            </Button>
          </div>
        </div>
      </PostForm>
    </Card>
  )
}

/** The chosen field of a column, else the proposed one. */
const fieldOf = ({ mapping }: Import, { name, proposed }: ImportColumn): string =>
  (Object.hasOwn(mapping, name) ? mapping[name] : proposed) ?? ''

/** The fields that a column can be, to choose from while one types. */
function Targets({ one, schema }: { one: Import; schema: RecordSchema }) {
  const native = targetsOf(schema.entity, { definitions: {}, strict: false }, one.by)
  const custom = schema.custom_fields.map(({ name, label }) => ({ name: `custom_fields.${name}`, label }))
  const all = [...[...native.byName.keys()].map((name) => ({ name, label: labelOf(name) })), ...custom]
  return (
    <datalist id="targets">
      {all.map(({ name, label }) => (
        <option value={name} label={label} key={name} />
      ))}
    </datalist>
  )
}

function ColumnFields(props: {
  column: ImportColumn
  i: number
  field: string
  typed: (name: string, otherwise: string) => string
  errors: string[]
}) {
  const { column, i, field, typed, errors } = props
  const { name, dropped, format, values } = column
  return (
    <>
      <input
        type="text"
        id={`f-field.${i}`}
        name={`field.${i}`}
        value={field}
        list="targets"
        autocomplete="off"
        aria-label={`Field of ${name}`}
        aria-invalid={errors.length > 0 || undefined}
        aria-describedby={errors.length > 0 ? `e-${i}` : undefined}
        placeholder="not imported"
      />
      {field === '' && dropped && <p class="help">{dropped}</p>}
      {errors.length > 0 && (
        <p class="error" id={`e-${i}`}>
          {errors.join('. ')}
        </p>
      )}
      {(['decimal', 'date'] as const)
        .filter((what) => format.open.includes(what))
        .map((what) => (
          <select
            name={`${what}.${i}`}
            key={what}
            aria-label={`How the ${what === 'date' ? 'dates' : 'numbers'} of ${name} are written`}
          >
            <option value="">{what === 'date' ? 'Which is the day?' : 'Which is the decimal sign?'}</option>
            {FORMATS[what].map(([id, label]) => (
              <option value={id} key={id} selected={typed(`${what}.${i}`, '') === id}>
                {label}
              </option>
            ))}
          </select>
        ))}
      {values && values.length > 0 && (
        <details id={`values-${i}`} open={values.some(({ proposed }) => proposed === null)}>
          <summary>
            {values.length} different values
            {values.some(({ proposed }) => proposed === null) && ', not all of them known'}
          </summary>
          <div class="values">
            {values.slice(0, MOST_VALUES).map(({ value, rows, proposed }, j) => (
              <label key={value}>
                <span dir="auto">
                  {value} <span class="muted">({rows})</span>
                </span>
                <input type="hidden" name={`value.${i}.${j}`} value={value} />
                <input type="hidden" name={`was.${i}.${j}`} value={proposed ?? ''} />
                <input
                  type="text"
                  name={`means.${i}.${j}`}
                  value={typed(`means.${i}.${j}`, proposed ?? '')}
                  placeholder="refused"
                  autocomplete="off"
                />
              </label>
            ))}
          </div>
        </details>
      )}
    </>
  )
}
