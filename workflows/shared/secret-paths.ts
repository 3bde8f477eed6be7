import { isObject } from './is-object.ts'
import { SECRETS } from './limits.ts'
import { stepsOf } from './paths.ts'
import { MASK } from './secret-names.ts'

/**
 * The values of a JSON value that its owner marked as secret by their paths: `user.ssn`; a name after a list is that of
 * each of its items.
 */
export class SecretPaths {
  /** As given. */
  protected readonly names: readonly string[]
  private readonly paths: string[][]
  /** The members that are secret, by the object or list that holds them. */
  private readonly members = new Map<object, Set<string>>()
  /** Objects and lists of which everything is secret. */
  private readonly whole = new Set<object>()

  constructor(body: unknown, paths: readonly string[]) {
    this.names = paths
    this.paths = paths.map(nameAndSteps)
    this.mark(body)
  }

  /** Adds paths, which the next `mark` looks for. */
  protected add(paths: readonly string[]): void {
    this.paths.push(...paths.map(nameAndSteps))
  }

  protected mark(root: unknown): void {
    for (const [name, ...steps] of this.paths) {
      for (const [holder, member] of [...placesAt(root, [name!]), ...placesAt(root, steps)]) {
        const members = this.members.get(holder) ?? new Set()
        this.members.set(holder, members.add(member))
        this.markAll((holder as Record<string, unknown>)[member])
      }
    }
  }

  private markAll(value: unknown): void {
    if (typeof value !== 'object' || value === null || this.whole.has(value)) return
    this.whole.add(value)
    for (const member of Object.values(value)) this.markAll(member)
  }

  /** The texts to mask also where they are repeated, at most `MAX_VALUES`. */
  valuesOf(record: unknown): string[] {
    const found = new Set<string>()
    const collect = (value: unknown): void => {
      if (typeof value !== 'object' || value === null || found.size >= MAX_VALUES) return
      const isWhole = this.whole.has(value)
      const members = this.members.get(value)
      for (const [name, member] of Object.entries(value)) {
        const isScalar = typeof member === 'string' || typeof member === 'number'
        const text = isScalar && (isWhole || members?.has(name)) ? String(member).trim() : ''
        if (text.length >= SECRETS.least && text.length <= SECRETS.characters) found.add(text)
        collect(member)
      }
    }
    collect(record)
    return [...found].slice(0, MAX_VALUES)
  }

  /** The value with a mask in each secret place. */
  masked(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    const isWhole = this.whole.has(value)
    const members = this.members.get(value)
    const shown = ([name, member]: [string, unknown]) =>
      isWhole || members?.has(name) ? MASK : this.masked(member)
    if (Array.isArray(value)) return value.map((item, index) => shown([String(index), item]))
    return Object.fromEntries(Object.entries(value).map((entry) => [entry[0], shown(entry)]))
  }

  protected touches(root: unknown, steps: string[]): boolean {
    if (steps.length === 0) return this.holds(root)
    return placesAt(root, steps).some(
      ([holder, member]) =>
        this.whole.has(holder) ||
        this.members.get(holder)?.has(member) ||
        this.holds((holder as Record<string, unknown>)[member]),
    )
  }

  private holds(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false
    return (
      this.whole.has(value) ||
      this.members.has(value) ||
      Object.values(value).some((member) => this.holds(member))
    )
  }
}

/** A path is also the name of a member. */
const nameAndSteps = (path: string) => [path, ...stepsOf(path)]

/** Values that are also masked where they are repeated. Each is searched for in the whole payload. */
const MAX_VALUES = 50

type Place = [holder: object, member: string]

/** The members at the end of some steps. A name after a list is that of each of its items. */
function placesAt(root: unknown, steps: readonly string[]): Place[] {
  let values = [root]
  let places: Place[] = []
  for (const step of steps) {
    places = values
      .flatMap((value) => holdersOf(value, step))
      .filter((holder) => Object.hasOwn(holder, step))
      .map((holder) => [holder, step])
    values = places.map(([holder, member]) => (holder as Record<string, unknown>)[member])
  }
  return places
}

function holdersOf(value: unknown, step: string): object[] {
  if (isObject(value)) return [value]
  if (!Array.isArray(value)) return []
  return /^\d+$/.test(step) ? [value] : value.flatMap((item) => holdersOf(item, step))
}

/** Whether a path names a secret value or a part of it; that of an item of a list counts as a part of its list. */
export function isWithinSecret(path: string, secretFields: readonly string[]): boolean {
  return areWithinSecret(stepsOf(path), secretFields)
}

/** The same for the steps of a path. */
export function areWithinSecret(steps: readonly string[], secretFields: readonly string[]): boolean {
  return secretFields.some((field) => {
    const secret = stepsOf(field)
    let reached = 0
    for (const step of steps) {
      if (reached === secret.length) break
      if (step === secret[reached]) reached++
      else if (!/^\d+$/.test(step)) return false
    }
    return reached === secret.length
  })
}
