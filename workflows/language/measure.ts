/** The number of scalars, lists and objects in a value; stops counting beyond `most`. */
export function countValues(value: unknown, most = Number.POSITIVE_INFINITY): number {
  let count = 1
  if (typeof value === 'object' && value !== null)
    for (const member of Object.values(value)) {
      count += countValues(member, most - count)
      if (count > most) break
    }
  return count
}
