import { commonFields, READ_ONLY } from '../../db/records/model/common-fields.ts'
import { referencesOf } from '../../db/records/model/kind.ts'
import { entities } from '../../db/records/model/kinds/index.ts'
import type { Catalogue } from '../../workflows/nodes/catalogue.ts'

const SET_BY_CLIENTS = Object.keys(commonFields).filter((name) => !READ_ONLY.includes(name))

/** The kinds of records with their fields and references, for node types and validation. */
export const catalogue: Catalogue = {
  entities: Object.fromEntries(
    Object.entries(entities).map(([name, kind]) => {
      const settable = Object.entries(kind.fields).filter(([, field]) => !field.readOnly)
      return [
        name,
        {
          object: kind.object,
          readable: [...READ_ONLY, ...SET_BY_CLIENTS, ...Object.keys(kind.fields)],
          writable: [...SET_BY_CLIENTS, 'associations', ...settable.map(([field]) => field)],
          references: Object.fromEntries(referencesOf(kind).map(([field, { to }]) => [field, to])),
        },
      ]
    }),
  ),
}
