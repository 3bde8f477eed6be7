import { activity } from './activity.ts'
import { company } from './company.ts'
import { contact } from './contact.ts'
import { deal } from './deal.ts'
import { note } from './note.ts'
import { task } from './task.ts'

/** Every kind of record, by its plural. To add one: a file beside this one, a line here and a migration. */
export const entities = {
  contacts: contact,
  companies: company,
  deals: deal,
  tasks: task,
  notes: note,
  activities: activity,
}

export type EntityName = keyof typeof entities

export const entityNames = Object.keys(entities) as EntityName[]

export const isEntity = (name: string): name is EntityName => Object.hasOwn(entities, name)

/** Both ways of naming a kind are in use: `company` is the record's `object`, `companies` its path. */
export const entityNamed = (name: string): EntityName | undefined =>
  entityNames.find((entity) => entity === name || entities[entity].object === name)
