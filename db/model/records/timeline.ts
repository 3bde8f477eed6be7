import { type KindName, kindNames, kinds } from './kinds/index.ts'

/** What stands in the timeline of a record: the kinds of record that are associated with it, and what happened to it. */
export const TIMELINE_TYPES = [
  ...kindNames.map((kind) => kinds[kind].object),
  'change',
  'run',
  'delivery',
] as const

export type TimelineType = (typeof TIMELINE_TYPES)[number]

/** The kind of the records of a type; undefined for changes, runs and deliveries. */
export const kindOfType = (type: TimelineType): KindName | undefined =>
  kindNames.find((kind) => kinds[kind].object === type)
