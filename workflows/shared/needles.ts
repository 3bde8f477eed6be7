import { GRAM, GramFilter, STEP } from './gram-filter.ts'

/** Finds in one pass which of many texts another one has: the work does not depend on how many there are. */
export class Needles<Value> {
  private readonly filter = new GramFilter()
  /** By gram: one of its texts begins at most `STEP` characters before it. */
  private readonly grams = new Map<string, Needle<Value>[]>()
  /** Too short for the pass. */
  private readonly short: Needle<Value>[] = []
  private size = 0

  add(text: string, value: Value): void {
    const needle = { text, value, order: this.size++ }
    if (text.length < GRAM + STEP - 1) {
      this.short.push(needle)
      return
    }
    for (let at = 0; at < STEP; at++) {
      const gram = text.slice(at, at + GRAM)
      this.filter.add(text, at)
      const others = this.grams.get(gram)
      if (others) others.push(needle)
      else this.grams.set(gram, [needle])
    }
  }

  get isEmpty(): boolean {
    return this.size === 0
  }

  /** The values of the texts that `text` has, in the order in which they were added. */
  in(text: string): Value[] {
    const found = new Set(this.short.filter((needle) => text.includes(needle.text)))
    const missing = new Set<Needle<Value>>()
    for (let at = 0; at + GRAM <= text.length && this.grams.size > 0; at += STEP) {
      if (!this.filter.mayHave(text, at)) continue
      for (const needle of this.grams.get(text.slice(at, at + GRAM)) ?? [])
        if (!found.has(needle) && !missing.has(needle)) {
          // Once for each text: a gram that a text has everywhere must not search it everywhere.
          if (text.includes(needle.text)) found.add(needle)
          else missing.add(needle)
        }
    }
    return [...found].sort((a, b) => a.order - b.order).map(({ value }) => value)
  }
}

interface Needle<Value> {
  text: string
  value: Value
  order: number
}
