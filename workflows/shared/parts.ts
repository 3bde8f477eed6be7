import { GRAM, GramFilter, STEP } from './gram-filter.ts'

/**
 * Finds parts of given texts in another one: a part of `least` and more characters. The work does not depend on how
 * many texts there are.
 */
export class Parts {
  /** Where each sequence of `GRAM` characters begins in the texts. */
  private readonly grams = new Map<string, { text: string; least: number; at: number }[]>()

  private readonly filter = new GramFilter()

  get isEmpty(): boolean {
    return this.grams.size === 0
  }

  add(text: string, least: number): void {
    for (let at = 0; at + GRAM <= text.length; at++) {
      const gram = text.slice(at, at + GRAM)
      this.filter.add(text, at)
      const places = this.grams.get(gram)
      if (!places) this.grams.set(gram, [{ text, least, at }])
      else if (places.length < PLACES) places.push({ text, least, at })
    }
  }

  /** The ranges of the parts in a text, in order and apart. */
  find(text: string): [start: number, end: number][] {
    const found: [number, number][] = []
    let at = 0
    while (at + GRAM <= text.length) {
      const places = this.filter.mayHave(text, at) ? this.grams.get(text.slice(at, at + GRAM)) : undefined
      if (!places) {
        at += STEP
        continue
      }
      const ranges = places.map((place) => around(text, at, place)).filter((one) => one !== undefined)
      const longest = ranges.toSorted((a, b) => b[1] - b[0] - (a[1] - a[0]))[0]
      const last = found.at(-1)
      if (longest) found.push([Math.max(longest[0], last?.[1] ?? 0), longest[1]])
      at = longest ? Math.max(longest[1], at + STEP) : at + STEP
    }
    return found
  }
}

/** Places at which one gram is remembered: a text such as `aaaaaaaaaaaaaaaa` has the same at each place. */
const PLACES = 4

/** The part of the text around a gram that is equal to the one around its place; undefined if it is too short. */
function around(
  text: string,
  at: number,
  place: { text: string; least: number; at: number },
): [number, number] | undefined {
  let before = 0
  while (
    before < Math.min(at, place.at) &&
    text.charCodeAt(at - before - 1) === place.text.charCodeAt(place.at - before - 1)
  )
    before++
  let after = GRAM
  while (
    at + after < text.length &&
    place.at + after < place.text.length &&
    text.charCodeAt(at + after) === place.text.charCodeAt(place.at + after)
  )
    after++
  return before + after >= place.least ? [at - before, at + after] : undefined
}
