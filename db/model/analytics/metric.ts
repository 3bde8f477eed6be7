/** What the metrics of the catalogue are made of. SQL is only ever that of these files: queries name metrics. */

export const SUBJECTS = ['pipeline', 'records', 'activities', 'workflows', 'webhooks'] as const
export type Subject = (typeof SUBJECTS)[number]

/** A column by which rows are grouped and filtered. */
export interface Dimension {
  /** `id`: a UUID. */
  type: 'id' | 'text'
  description: string
  /** The values that it can have, where they are known. */
  values?: readonly string[]
}

/** A table as the metrics read it, under the name `t`; an index holds all the columns that they read. */
export interface Source {
  table: string
  /** SQL: the rows that exist for users. */
  where: string
  /** By the name of the column. */
  dimensions: Record<string, Dimension>
  /** The setting of the organization after whose days rows are deleted; undefined: they are kept. */
  retention?: 'run_retention_days' | 'log_retention_days'
}

/** What is computed of the rows: SQL of `t`. All but `percentile` are made of sums, so that groups can be added up. */
export type Measure =
  | { type: 'count' }
  /** Rows in which `of` is null do not count. */
  | {
      type: 'sum'
      of: string
      /** `of` is a hundred times the value: a division of each row takes as long as the rest. */
      hundredths?: true
    }
  | { type: 'average'; of: string }
  /** The percentage of the rows for which `is` holds. */
  | { type: 'rate'; is: string }
  | { type: 'percentile'; of: string; p: number }

/** SQL: the seconds between two columns. The difference of two times is an interval, which takes twice as long. */
export const secondsBetween = (from: string, to: string): string =>
  `(date_part('epoch', t.${to}) - date_part('epoch', t.${from}))`

export type Unit = 'count' | 'money' | 'percent' | 'days' | 'seconds' | 'milliseconds'

export interface Metric {
  /** `<table>.<what>`. */
  name: string
  subject: Subject
  unit: Unit
  description: string
  source: Source
  /** The column whose time puts a row into the period and a bucket; `id`: the time in its UUIDv7. */
  time: string
  /** SQL: the rows that it counts, of those of the source. */
  where?: string
  measure: Measure
  /** It tells the present state: without `from` the period has no start. */
  present?: true
  /** Of money: the column of the currency. */
  currency?: string
}
