import { isObject } from '../../../workflows/shared/is-object.ts'
import { stepsOf } from '../../../workflows/shared/paths.ts'
import { Redactor } from '../../../workflows/shared/redactor.ts'
import { MASK } from '../../../workflows/shared/secret-names.ts'
import { SecretPaths } from '../../../workflows/shared/secret-paths.ts'
import { payloadPaths } from './mapping/liquid.ts'
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

/** In a list of secret fields: whatever the mapping writes to this field of the record is secret. */
const TARGET = 'record:'
export const secretTarget = (field: string) => `${TARGET}${field}`

/** The secret values of a body, which may be a batch: a path begins at the body or at a record of it. */
export class SecretFields extends SecretPaths {
  /** What is shown of a record. */
  hide(record: Payload, mapped: Mapped, mapping: FieldMapping): Hidden {
    this.add(pathsTo(this.names, mapped, mapping))
    this.mark(record)
    const values = this.valuesOf(record)
    const payload = new Redactor(values).value(this.masked(record) as Payload)
    const isFound = this.touches(record, [])
    return { payload, isFound, targets: isFound ? this.targets(record, mapped, mapping) : [], values }
  }

  /** Whether the names include a field of the record. */
  writes(field: string): boolean {
    return this.names.includes(secretTarget(field))
  }

  /** Whether the value at a path is secret, is part of a secret value, or has one. */
  isSecret(record: Payload, path: string): boolean {
    const [name, ...steps] = [path, ...stepsOf(path)]
    return this.touches(record, Object.hasOwn(record, name!) ? [name!] : steps)
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

/** The paths of a payload that the mapping takes for the secret fields of the record. */
function pathsTo(names: readonly string[], { sources }: Mapped, mapping: FieldMapping): string[] {
  const isSecret = (to: string) => names.includes(secretTarget(to))
  const rules = mapping.mode === 'manual' ? mapping.rules.filter(({ to }) => isSecret(to)) : []
  return [
    ...Object.entries(sources).flatMap((source) => (isSecret(source[0]) ? takenPath(source) : [])),
    ...rules.flatMap(({ transforms }) =>
      transforms.flatMap((one) => (one.type === 'combine' ? one.with : [])),
    ),
  ]
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
