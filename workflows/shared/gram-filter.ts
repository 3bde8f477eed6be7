/** Characters of a gram. */
export const GRAM = 8
/** Each part of `GRAM + STEP - 1` characters has a whole gram at a multiple of this. */
export const STEP = 5

/** A power of two; a hundred secrets fill a fifth of it. */
const PLACES = 65_536

/**
 * Says in a few nanoseconds that a text has none of some grams at a place, for a search that looks at every `STEP`th
 * place only. It may err the other way.
 */
export class GramFilter {
  private readonly seen = new Uint8Array(PLACES)

  add(text: string, at: number): void {
    this.seen[hashOf(text, at)] = 1
  }

  mayHave(text: string, at: number): boolean {
    return this.seen[hashOf(text, at)] === 1
  }
}

function hashOf(text: string, at: number): number {
  let hash = 0
  for (let offset = 0; offset < GRAM; offset++) hash = Math.imul(hash, 31) + text.charCodeAt(at + offset)
  return ((hash ^ (hash >>> 15)) * 0x9e37 + (hash >>> 7)) & (PLACES - 1)
}
