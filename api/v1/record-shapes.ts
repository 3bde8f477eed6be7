import { z } from 'zod'
import { recordExample } from '../../db/model/records/examples.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { type AgxRecord, expanded, listedSchema } from '../../db/model/records/schemas.ts'
import { capitalized, pascalCase } from '../../workflows/shared/record-kinds.ts'
import { listEnvelope } from '../http/list-query.ts'
import type { RouteRequest } from '../http/route.ts'
import { associationContent } from './association-shape.ts'
import type { RecordQuery } from './record-query.ts'

/** Shared parameters, shapes and presenters of the operations on records. */

export const kindParams = z.object({ entity: z.enum(kindNames).describe('The kind of record.') })
export const recordParams = z.object({ entity_id: z.uuid().toLowerCase().describe('The id of the record.') })

/** The name of a kind in operation ids. */
export const title = pascalCase

/** The tag of a kind's operations, such as `Line items`. */
export const tagOf = (kind: KindName): string => capitalized(kind.replace('_', ' '))

/** A record in a list, such as `ContactListItem`. All fields are optional, because `fields` selects them. */
export const listItem = (kind: KindName) => listItems[kind]

function buildListItem(kind: KindName) {
  const definition = kinds[kind]
  return listedSchema(kind)
    .extend({
      association: associationContent.optional().describe('Only in lists of associated records.'),
      expanded,
      deleted_at: z.iso.datetime().optional().describe('Only in lists of deleted records.'),
    })
    .describe('All fields; with `fields`, those that it names, `id` and `object`.')
    .meta({ id: `${title(definition.object)}ListItem`, examples: [recordExample(definition)] })
}

const listItems = Object.fromEntries(kindNames.map((kind) => [kind, buildListItem(kind)])) as Record<
  KindName,
  ReturnType<typeof buildListItem>
>

/** A list of records, such as `ContactList`. */
export const recordList = (kind: KindName) => listEnvelope(listItem(kind), title(kinds[kind].object))

/** The records with only the requested `fields`. */
export function selectFields(records: AgxRecord[], { fields, expand, deleted }: RecordQuery): object[] {
  if (!fields) return records
  const kept = [
    'object',
    'id',
    ...fields,
    ...(expand ? ['expanded'] : []),
    ...(deleted ? ['deleted_at'] : []),
  ]
  return records.map((record) => Object.fromEntries(kept.map((name) => [name, record[name]])))
}

/** Sets the ETag of the response. @returns the record. */
export function withETag<T extends { version: number }>(setHeader: RouteRequest['setHeader'], record: T): T {
  setHeader('ETag', `"${record.version}"`)
  return record
}
