/**
 * The kinds of records: by the plural, which is their path, table and scope, the singular, which is their `object` on the
 * wire and the first half of their events. To add one: a line here, then what does not compile any more.
 */
export const RECORD_KINDS = {
  contacts: 'contact',
  companies: 'company',
  deals: 'deal',
  tasks: 'task',
  notes: 'note',
  activities: 'activity',
} as const

export type EntityName = keyof typeof RECORD_KINDS
export type ObjectName = (typeof RECORD_KINDS)[EntityName]

export const entityNames = Object.keys(RECORD_KINDS) as EntityName[]
export const objectNames = Object.values(RECORD_KINDS)

/** `a contact`, `an activity`. */
export const withArticle = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`

/** `Contact`. */
export const capitalized = <T extends string>(text: T): Capitalize<T> =>
  (text.charAt(0).toUpperCase() + text.slice(1)) as Capitalize<T>
