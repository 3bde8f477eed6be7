/**
 * The parts of the catalogue's metrics. Queries only name metrics; all SQL comes from these files. A metric is one
 * definition, with its conditions and sums as fragments of SQL beside the text that describes them: they are constants
 * of the model, as its enum values are. `db/analytics/statement.ts` builds the statement from them.
 */

export const SUBJECTS = ['pipeline', 'records', 'activities', 'workflows', 'webhooks'] as const
export type Subject = (typeof SUBJECTS)[number]

/** A column by which rows are grouped and filtered. */
export interface Dimension {
  /** `id`: a UUID. */
  type: 'id' | 'text'
  description: string
  /** The possible values, if they are a fixed list. */
  values?: readonly string[]
  /** Each organization defines the values. */
  ofOrganization?: true
}

/** A table that metrics read, as `t`. An index covers all the columns that they read. */
export interface Source {
  table: string
  /** SQL condition of the rows that users can see. */
  where: string
  /** The dimensions by column name. */
  dimensions: Record<string, Dimension>
  /** The organization's setting for the days after which rows are deleted. Undefined: rows are kept. */
  retention?: 'run_retention_days' | 'log_retention_days'
}

/** The aggregate of the rows: SQL on `t`. All except `percentile` consist of sums, so that groups can be added up. */
export type Measure =
  | { type: 'count' }
  /** Rows in which `of` is null do not count. */
  | {
      type: 'sum'
      of: string
      /** `of` is a hundred times the value, divided once per group: dividing in each row would double the time. */
      hundredths?: true
    }
  | { type: 'average'; of: string }
  /** The percentage of the rows that satisfy `is`. */
  | { type: 'rate'; is: string }
  | { type: 'percentile'; of: string; p: number }

/** SQL: the seconds between two columns. Subtracting timestamps yields an interval, which takes twice as long. */
export const secondsBetween = (from: string, to: string): string =>
  `(date_part('epoch', t.${to}) - date_part('epoch', t.${from}))`

export type Unit = 'count' | 'money' | 'percent' | 'days' | 'seconds' | 'milliseconds'

export interface Metric {
  /** `<table>.<metric>`. */
  name: string
  subject: Subject
  unit: Unit
  description: string
  source: Source
  /** The column with the time that selects the period and bucket of a row. `id`: the time in its UUIDv7. */
  time: string
  /** SQL condition of the counted rows of the source. */
  where?: string
  measure: Measure
  /** The metric reports the present state: without `from` the period has no start. */
  present?: true
  /** The column with the currency, for metrics of money. */
  currency?: string
}
