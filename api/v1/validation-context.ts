import { entities } from '../../db/records/kinds/index.ts'
import type { ValidationContext } from '../../workflows/definition/validate.ts'

const SET_BY_CLIENTS = ['external_id', 'owner_id', 'tags', 'custom_fields']
const SET_BY_SERVICE = [
  ...['id', 'object', 'version', 'created_at', 'updated_at', 'created_by', 'updated_by'],
]

/** What validation knows of records: the kinds, and the fields that can be read and set. */
export function validationContext(): ValidationContext {
  return {
    entities: Object.fromEntries(
      Object.entries(entities).map(([name, { fields }]) => {
        const settable = Object.entries(fields).filter(([, field]) => !field.readOnly)
        return [
          name,
          {
            readable: [...SET_BY_SERVICE, ...SET_BY_CLIENTS, ...Object.keys(fields)],
            writable: [...SET_BY_CLIENTS, 'associations', ...settable.map(([field]) => field)],
          },
        ]
      }),
    ),
  }
}
