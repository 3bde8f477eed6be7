import { type EntityName, entityNames, RECORD_KINDS } from '../../../../workflows/shared/record-kinds.ts'
import type { Kind, KindDefinition } from '../kind.ts'
import { activity } from './activity.ts'
import { company } from './company.ts'
import { contact } from './contact.ts'
import { deal } from './deal.ts'
import { note } from './note.ts'
import { task } from './task.ts'

export { type EntityName, entityNames }

/** To add a kind: a line in `workflows/shared/record-kinds.ts`, a file beside this one, a line here and a migration. */
const definitions: Record<EntityName, KindDefinition> = {
  contacts: contact,
  companies: company,
  deals: deal,
  tasks: task,
  notes: note,
  activities: activity,
}

/** Every kind of record, by its plural. */
export const entities = Object.fromEntries(
  entityNames.map((entity): [EntityName, Kind] => [
    entity,
    { object: RECORD_KINDS[entity], entity, ...definitions[entity] },
  ]),
) as Record<EntityName, Kind>

export const isEntity = (name: string): name is EntityName => Object.hasOwn(entities, name)

/** The kind with this plural or singular name. */
export const entityNamed = (name: string): EntityName | undefined =>
  entityNames.find((entity) => entity === name || entities[entity].object === name)
