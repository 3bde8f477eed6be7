import { isObject } from '../../../workflows/shared/is-object.ts'
import { SECRETS } from '../../../workflows/shared/limits.ts'
import { Redactor } from '../../../workflows/shared/redactor.ts'
import { MASK } from '../../../workflows/shared/secret-names.ts'
import { payloadPaths } from './mapping/liquid.ts'
import { stepsOf } from './mapping/path.ts'
import type { Mapped } from './mapping/types.ts'
import { takenPath } from './mapping/unmapped.ts'
import type { Payload } from './parse-body.ts'
import type { FieldMapping } from './types.ts'

/**
 * The values of a payload that the owner of its webhook marked as secret. The mapping reads them; logs, samples, previews
 * and runs show masks.
 */
export interface Hidden {
  /** The payload with masks, also where it repeats a secret value. */
  payload: Payload
  /** Whether the payload has a secret value. */
  isFound: boolean
  /** The targets of the mapping that a secret value is written to. */
  targets: string[]
  /** The secret values that are masked wherever they occur. */
  values: string[]
}

/** The secret values of a body, which may be a batch: a path begins at the body or at a record of it. */
export class SecretFields {
  private readonly paths: string[][]
  /** The members that are secret, by the object or list that holds them. */
  private readonly members = new Map<object, Set<string>>()
  /** Objects and lists of which everything is secret. */
  private readonly whole = new Set<object>()

  constructor(body: unknown, paths: readonly string[]) {
    this.paths = paths.map((path) => [path, ...stepsOf(path)])
    this.mark(body)
  }

  /** What is shown of a record. */
  hide(record: Payload, mapped: Mapped, mapping: FieldMapping): Hidden {
    this.mark(record)
    const values = this.valuesOf(record)
    const payload = new Redactor(values).value(this.masked(record) as Payload)
    const isFound = this.touches(record, [])
    return { payload, isFound, targets: isFound ? this.targets(record, mapped, mapping) : [], values }
  }

  /** Whether the value at a path is secret, is part of a secret value, or has one. */
  isSecret(record: Payload, path: string): boolean {
    const [name, ...steps] = [path, ...stepsOf(path)]
    return this.touches(record, Object.hasOwn(record, name!) ? [name!] : steps)
  }

  private mark(root: unknown): void {
    for (const [name, ...steps] of this.paths) {
      for (const [holder, member] of [...placesAt(root, [name!]), ...placesAt(root, steps)]) {
        const members = this.members.get(holder) ?? new Set()
        this.members.set(holder, members.add(member))
        this.markAll((holder as Payload)[member])
      }
    }
  }

  private markAll(value: unknown): void {
    if (typeof value !== 'object' || value === null || this.whole.has(value)) return
    this.whole.add(value)
    for (const member of Object.values(value)) this.markAll(member)
  }

  private valuesOf(record: Payload): string[] {
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

  private masked(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    const isWhole = this.whole.has(value)
    const members = this.members.get(value)
    const shown = ([name, member]: [string, unknown]) =>
      isWhole || members?.has(name) ? MASK : this.masked(member)
    if (Array.isArray(value)) return value.map((item, index) => shown([String(index), item]))
    return Object.fromEntries(Object.entries(value).map((entry) => [entry[0], shown(entry)]))
  }

  private touches(root: unknown, steps: string[]): boolean {
    if (steps.length === 0) return this.holds(root)
    return placesAt(root, steps).some(
      ([holder, member]) =>
        this.whole.has(holder) ||
        this.members.get(holder)?.has(member) ||
        this.holds((holder as Payload)[member]),
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

  private targets(record: Payload, { sources }: Mapped, mapping: FieldMapping): string[] {
    const sourced = Object.entries(sources).filter((source) => this.isSecret(record, takenPath(source)))
    const rules = mapping.mode === 'manual' ? mapping.rules : []
    const combined = rules.filter(({ transforms }) =>
      transforms.some(
        (one) =>
          (one.type === 'combine' && one.with.some((path) => this.isSecret(record, path))) ||
          (one.type === 'liquid' && payloadPaths(one.filters).some((steps) => this.touches(record, steps))),
      ),
    )
    return [...new Set([...sourced.map(([to]) => to), ...combined.map(({ to }) => to)])]
  }
}

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
    values = places.map(([holder, member]) => (holder as Payload)[member])
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
  const steps = stepsOf(path)
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

/** What a payload wrote, or would write, as it is shown. */
export interface Shown {
  message?: string | null
  warnings?: string[]
  mapped_data?: unknown
  /** By field. */
  changes?: Record<string, unknown>
  details?: unknown
  error_details?: unknown
}

/** An outcome without the secret values of its payload. */
export function withoutSecrets<T extends Shown>(hidden: Hidden | undefined, outcome: T): T {
  if (!hidden?.isFound) return outcome
  const { message, warnings, details, error_details, changes, mapped_data } = outcome
  const masked = maskedTargets(hidden.targets, mapped_data)
  const shown = {
    message,
    warnings,
    details,
    error_details,
    mapped_data: masked,
    changes: changes && maskedChanges(hidden.targets, changes),
  }
  const given = Object.entries(new Redactor(hidden.values).value(shown)).filter(([name]) =>
    Object.hasOwn(outcome, name),
  )
  return { ...outcome, ...Object.fromEntries(given) }
}

function maskedTargets(targets: string[], data: unknown): unknown {
  if (!isObject(data)) return data
  const { fields, company_name, note, ...others } = data as unknown as Mapped
  const shown: Record<string, unknown> = { ...fields }
  for (const target of targets) {
    const [outer = '', inner] = target.split('.')
    const value = shown[outer]
    if (value === undefined) continue
    shown[outer] = inner !== undefined && isObject(value) ? { ...value, [inner]: MASK } : MASK
  }
  const text = (name: string, value: string | undefined, as: string) =>
    value === undefined ? {} : { [name]: targets.includes(as) ? MASK : value }
  return {
    ...others,
    ...(fields ? { fields: shown } : {}),
    ...text('company_name', company_name, 'company_name'),
    ...text('note', note, 'note_content'),
  }
}

function maskedChanges(targets: string[], changes: Record<string, unknown>): Record<string, unknown> {
  const outer = new Set(targets.map((target) => target.split('.')[0]!))
  return Object.fromEntries(
    Object.entries(changes).map(([field, change]) => {
      // The change of an object, such as an address, is that of all its members.
      const isMasked = targets.includes(field) || outer.has(field)
      return [field, isMasked ? { from: MASK, to: MASK } : change]
    }),
  )
}
