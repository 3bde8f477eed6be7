/**
 * The name closest to what was written, within the edit-distance limit: default a third of its letters.
 * Only names of about the same length are compared.
 */
export function nearest(
  written: string,
  names: Iterable<string>,
  maxDistance = Math.round(written.length / 3),
): string | undefined {
  if (written.length > 100) return undefined
  const lower = written.toLowerCase()
  let best: string | undefined
  let least = maxDistance + 1
  for (const name of names) {
    if (Math.abs(name.length - written.length) >= least) continue
    const edits = distance(lower, name.toLowerCase(), least)
    if (edits < least) [best, least] = [name, edits]
  }
  return best
}

/** The Damerau-Levenshtein distance (a transposition is one edit); Infinity as soon as it reaches `limit`. */
function distance(a: string, b: string, limit: number): number {
  // The last three rows; the oldest becomes the next.
  let [before, row, next] = [0, 1, 2].map(() => new Uint8Array(b.length + 1)) as [Row, Row, Row]
  for (let j = 0; j <= b.length; j++) row[j] = j
  let leastBefore = 0
  for (let i = 1; i <= a.length; i++) {
    next[0] = i
    let least = i
    for (let j = 1; j <= b.length; j++) {
      let edits = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      edits = Math.min(edits, row[j]! + 1, next[j - 1]! + 1)
      if (j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) edits = Math.min(edits, before[j - 2]! + 1)
      next[j] = edits
      if (edits < least) least = edits
    }
    // A transposition reaches one row further back.
    if (least >= limit && leastBefore >= limit) return Infinity
    leastBefore = least
    ;[before, row, next] = [row, next, before]
  }
  return row[b.length]!
}

/** The edits fit a byte: names of more than some 130 letters are not compared. */
type Row = Uint8Array
