/**
 * A limit that adapts to what it measures, as congestion control does. It grows more slowly than it shrinks: what starts
 * together is also slow together.
 */
const SHRINK = 0.7
const GROW = 1.2

export const shrunk = (limit: number, least: number): number => Math.max(least, Math.floor(limit * SHRINK))
export const grown = (limit: number, most: number): number => Math.min(most, Math.ceil(limit * GROW))

/** Undefined without values, which it sorts. */
export const median = (values: number[]): number | undefined =>
  values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
