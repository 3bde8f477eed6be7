/** A row of the result of a query’s statement: the sums of one group in one bucket. */
export interface Cell {
  /** From 1; 1 without an interval; 0 for the percentile over all buckets. */
  bucket: number
  /** The rank of its group, from 1; null for groups that are not shown. */
  place: number | null
  d1: string | null
  d2: string | null
  currency: string | null
  /** The class of the percentile. */
  class: number | null
  /** The number of rows. */
  n: number
  /** The sum of the measure. */
  a: string | number | null
}

/** The ratio of the bounds of a class: a percentile is exact within 2 %. */
export const CLASS_RATIO = 1.04
/** Values below this count as 0. */
export const CLASS_LEAST = 0.001
const CLASS_OF_LEAST = Math.ceil(Math.log(CLASS_LEAST) / Math.log(CLASS_RATIO))

/** The middle of a class. */
export const valueOfClass = (at: number): number => (at <= CLASS_OF_LEAST ? 0 : CLASS_RATIO ** (at - 0.5))
