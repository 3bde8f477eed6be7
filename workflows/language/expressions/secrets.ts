import type { Value } from 'liquidjs'
import { MASK } from '../../shared/secret-names.ts'
import { NodeError } from '../node-error.ts'
import { pointer } from '../problems.ts'
import { type Reference, references, referencesOf } from './references.ts'
import { hasPlaceholder } from './template.ts'

/** The root of the organization's secrets, which only nodes that call other services can read. */
export const SECRETS_ROOT = 'secrets'

const isSecret = ({ path }: Reference) => path[0] === SECRETS_ROOT

/** Whether a placeholder reads a secret, also within brackets or in a filter argument. */
export const readsSecret = (part: Value): boolean => referencesOf(part, false).some(isSecret)

/** The name of the secret or the environment variable that a reference reads; undefined if it is computed or absent. */
export const envNamed = ({ path: [, name] }: Reference): string | undefined =>
  typeof name === 'string' ? name : undefined

/**
 * The secrets that the placeholders of a config read; `optional`: every placeholder that reads it has a default. Throws
 * NodeError `placeholder_error` if a name is computed.
 */
export function secretsRead(config: unknown): Map<string, { optional: boolean }> {
  const found = new Map<string, { optional: boolean }>()
  for (const reference of secretReferences(config)) {
    const name = envNamed(reference)
    if (name === undefined) throw new NodeError('placeholder_error', NAME_IT)
    found.set(name, { optional: reference.optional && found.get(name)?.optional !== false })
  }
  return found
}

export const NAME_IT = 'a placeholder names the secret that it reads: {{ secrets.<name> }}'

function secretReferences(value: unknown): Reference[] {
  if (typeof value === 'string') {
    if (!value.includes(SECRETS_ROOT) || !hasPlaceholder(value)) return []
    try {
      return references(value).filter(isSecret)
    } catch {
      // Rendering reports the syntax error.
      return []
    }
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(secretReferences) : []
}

/** The rendered texts that hold secrets. */
export class Tainted {
  /** The masked texts, by the JSON Pointer of the rendered one. */
  private readonly masks = new Map<string, string>()
  private readonly values: unknown[] = []

  /** Adds a rendered text, in parts. A text without a secret is ignored. */
  add(path: string, parts: (string | { secret: unknown })[]): void {
    if (parts.every((part) => typeof part === 'string')) return
    for (const part of parts) if (typeof part !== 'string') this.values.push(part.secret)
    this.masks.set(path, parts.map((part) => (typeof part === 'string' ? part : MASK)).join(''))
  }

  /** The texts that were computed from secrets, such as by `{{ secrets.x | base64_encode }}`. */
  texts(): string[] {
    return this.values.flatMap(textsIn)
  }

  /** A rendered value with a mask for each placeholder that read a secret. */
  shown(rendered: unknown, path = ''): unknown {
    if (this.masks.size === 0) return rendered
    const mask = this.masks.get(path)
    if (mask !== undefined) return mask
    if (Array.isArray(rendered)) return rendered.map((item, index) => this.shown(item, `${path}/${index}`))
    if (typeof rendered !== 'object' || rendered === null) return rendered
    return Object.fromEntries(
      Object.entries(rendered).map(([key, item]) => [key, this.shown(item, `${path}${pointer(key)}`)]),
    )
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
