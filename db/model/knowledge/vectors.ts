/** Vectors of passages, of length 1. */

/** As they are stored: numbers of 4 bytes, little-endian. */
export function packed(vector: Float32Array): Buffer {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes
}

/**
 * The signs of the numbers as text of PostgreSQL's type bit. The more signs two vectors share, the smaller is the angle
 * between them.
 */
export const signsOf = (vector: Float32Array): string =>
  Array.from(vector, (value) => (value > 0 ? '1' : '0')).join('')

/** The cosine of the angle between a vector and a stored one of the same length. */
export function cosine(vector: Float32Array, stored: Buffer): number {
  let sum = 0
  for (let i = 0; i < vector.length; i++) sum += vector[i]! * stored.readFloatLE(i * 4)
  return sum
}

/** Dampens the first ranks: the value of the paper that introduced reciprocal rank fusion, and of most search engines. */
const RRF = 60

/**
 * Fuses rankings: the score of an item is the sum of 1 / (60 + its rank) in each, from 0 to 1, which an item has that is
 * first in all. Best first; items of equal score in the order of the first ranking that has them.
 */
export function fuse<T>(rankings: readonly (readonly T[])[], keyOf: (item: T) => string): [T, number][] {
  const found = new Map<string, [T, number]>()
  for (const ranking of rankings)
    for (const [i, item] of ranking.entries()) {
      const [first, score] = found.get(keyOf(item)) ?? [item, 0]
      found.set(keyOf(item), [first, score + (RRF + 1) / (RRF + 1 + i) / rankings.length])
    }
  return [...found.values()].sort(([, a], [, b]) => b - a)
}
