import { commonFields, READ_ONLY } from '../../db/records/model/common-fields.ts'
import { entities } from '../../db/records/model/kinds/index.ts'
import type { ValidationContext } from '../../workflows/definition/validate.ts'

const SET_BY_CLIENTS = Object.keys(commonFields).filter((name) => !READ_ONLY.includes(name))

/** What validation knows of records: the kinds, and the fields that can be read and set. */
export function validationContext(): ValidationContext {
  return {
    entities: Object.fromEntries(
      Object.entries(entities).map(([name, { fields }]) => {
        const settable = Object.entries(fields).filter(([, field]) => !field.readOnly)
        return [
          name,
          {
            readable: [...READ_ONLY, ...SET_BY_CLIENTS, ...Object.keys(fields)],
            writable: [...SET_BY_CLIENTS, 'associations', ...settable.map(([field]) => field)],
          },
        ]
      }),
    ),
  }
}
