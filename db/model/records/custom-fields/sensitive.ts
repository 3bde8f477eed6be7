import { randomBytes } from 'node:crypto'

/**
 * Values of sensitive custom fields. A record holds a mask in their place, a text with a random part that names the
 * value in `sensitive_values`. So whatever copies or shows a record has the mask, without a rule of its own: history,
 * events, deliveries, runs, search, exports, logs. Each write makes another mask, also of an equal value: otherwise a
 * user who may write could find a value out by trying.
 */
const MASK = /^\[masked:[0-9a-z]{12}\]$/

export const isMask = (value: unknown): value is string => typeof value === 'string' && MASK.test(value)

/** SQL: the same. */
export const MASK_PATTERN = MASK.source

const ALPHABET = '0123456789abcdefghijklmnopqrstuv'

/** A value that is about to be stored. JSON and texts made of it have its mask. */
export class SensitiveValue {
  readonly mask = `[masked:${Array.from(randomBytes(12), (byte) => ALPHABET[byte % 32]).join('')}]`
  readonly #value: unknown

  constructor(value: unknown) {
    this.#value = value
  }

  reveal(): unknown {
    return this.#value
  }

  toJSON(): string {
    return this.mask
  }

  toString(): string {
    return this.mask
  }
}
