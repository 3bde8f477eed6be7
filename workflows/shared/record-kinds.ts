/**
 * The record kinds. The plural is the path, table and scope; the singular is `object` on the wire and the first half of
 * event names. To add one: a line here, then fix the compile errors.
 */
export const RECORD_KINDS = {
  contacts: 'contact',
  companies: 'company',
  deals: 'deal',
  tasks: 'task',
  notes: 'note',
  activities: 'activity',
  products: 'product',
  line_items: 'line_item',
  consents: 'consent',
} as const

export type KindName = keyof typeof RECORD_KINDS
export type KindObject = (typeof RECORD_KINDS)[KindName]

/** The kinds that an incoming webhook can write. */
export const TARGET_KINDS = ['contacts', 'companies', 'deals', 'tasks'] as const satisfies KindName[]

export const kindNames = Object.keys(RECORD_KINDS) as KindName[]
export const kindObjects = Object.values(RECORD_KINDS)

/** The kinds whose records can be duplicates, to be merged. There is only one consent for each of its keys. */
export const mergeableKinds = kindNames.filter((kind) => kind !== 'consents')
export type MergeableKind = (typeof mergeableKinds)[number]

/** `a contact`, `an activity`, `a line item`. */
export const withArticle = (noun: string): string =>
  `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun.replace('_', ' ')}`

/** `Contact`, `LineItem`. */
export const pascalCase = (name: string): string => name.split('_').map(capitalized).join('')

/** `Contact`. */
export const capitalized = <T extends string>(text: T): Capitalize<T> =>
  (text.charAt(0).toUpperCase() + text.slice(1)) as Capitalize<T>
