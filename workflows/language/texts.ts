import { type Reference, referencesIn } from './expressions/references.ts'
import { hasPlaceholder, parseAuthored, type Template } from './expressions/template.ts'

/** A text in a value, and the keys and indexes that lead to it. */
export interface PlacedText {
  text: string
  path: PropertyKey[]
}

/** Every text in a value: in a mapping only the values, not the keys. */
export function textsIn(value: unknown, path: PropertyKey[] = []): PlacedText[] {
  const found: PlacedText[] = []
  collect(value, path, found)
  return found
}

function collect(value: unknown, path: PropertyKey[], found: PlacedText[]): void {
  if (typeof value === 'string') found.push({ text: value, path })
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) collect(item, [...path, index], found)
  else if (typeof value === 'object' && value !== null)
    for (const key of Object.keys(value))
      collect((value as Record<string, unknown>)[key], [...path, key], found)
}

interface Parsed {
  parts: Template['parts']
  references: Reference[]
}

/**
 * The texts of one definition and the references in them, shared by all checks: finding and parsing them once instead
 * of five times halves the time of a validation (`npm run bench -- validate`).
 */
export class Texts {
  private readonly found = new Map<object, readonly PlacedText[]>()
  private readonly parsed = new Map<string, Parsed | { error: unknown }>()

  /** The texts of a config or of the outputs. */
  of(value: object): readonly PlacedText[] {
    const known = this.found.get(value)
    if (known) return known
    const texts = textsIn(value)
    this.found.set(value, texts)
    return texts
  }

  /** Throws TemplateError. */
  references(text: string): readonly Reference[] {
    if (!hasPlaceholder(text)) return []
    const parsed = this.parsed.get(text) ?? this.parse(text)
    if ('error' in parsed) throw parsed.error
    return parsed.references
  }

  /** The literal texts and placeholders of a text; undefined if it does not parse. */
  parts(text: string): Template['parts'] | undefined {
    if (!hasPlaceholder(text)) return [text]
    const parsed = this.parsed.get(text) ?? this.parse(text)
    return 'error' in parsed ? undefined : parsed.parts
  }

  /** The same; none for a text that does not parse, which `checkReferences` reports. */
  readable(text: string): readonly Reference[] {
    if (!hasPlaceholder(text)) return []
    const parsed = this.parsed.get(text) ?? this.parse(text)
    return 'error' in parsed ? [] : parsed.references
  }

  private parse(text: string): Parsed | { error: unknown } {
    let parsed: Parsed | { error: unknown }
    try {
      const { parts } = parseAuthored(text)
      parsed = { parts, references: referencesIn(parts) }
    } catch (error) {
      parsed = { error }
    }
    this.parsed.set(text, parsed)
    return parsed
  }
}
