import { type KindName, kindNames, RECORD_KINDS } from '../../../../workflows/shared/record-kinds.ts'
import type { Kind, KindDefinition } from '../kind.ts'
import { activity } from './activity.ts'
import { company } from './company.ts'
import { consent } from './consent.ts'
import { contact } from './contact.ts'
import { deal } from './deal.ts'
import { line_item } from './line-item.ts'
import { note } from './note.ts'
import { product } from './product.ts'
import { task } from './task.ts'

export { type KindName, kindNames }

/** To add a kind: a line in `workflows/shared/record-kinds.ts`, a file beside this one, a line here and a migration. */
const definitions: Record<KindName, KindDefinition> = {
  contacts: contact,
  companies: company,
  deals: deal,
  tasks: task,
  notes: note,
  activities: activity,
  products: product,
  line_items: line_item,
  consents: consent,
}

/** Every kind of record, by its plural. */
export const kinds = Object.fromEntries(
  kindNames.map((kind): [KindName, Kind] => [
    kind,
    { object: RECORD_KINDS[kind], entity: kind, ...definitions[kind] },
  ]),
) as Record<KindName, Kind>

export const isKind = (name: string): name is KindName => Object.hasOwn(kinds, name)

/** The kind with this plural or singular name. */
export const kindNamed = (name: string): KindName | undefined =>
  kindNames.find((kind) => kind === name || kinds[kind].object === name)
