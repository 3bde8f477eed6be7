import { MASK } from '../../workflows/shared/secret-names.ts'

/** Shorter texts could be anything; secrets have at least 16 characters. */
const MIN_LENGTH = 8

/**
 * Masks the secrets of a webhook where a request repeats them: Jotform sends the URL of the webhook, with its token, in
 * the body, and a proxy sends it in a header.
 */
export class SecretMask {
  private readonly texts: string[]

  constructor(secrets: string[]) {
    // As it is, in a URL, and in the JSON of PHP, which escapes the slash.
    const forms = secrets.flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      secret.replaceAll('/', '\\/'),
    ])
    this.texts = [...new Set(forms)].filter((text) => text.length >= MIN_LENGTH)
  }

  text(value: string): string {
    return this.texts.reduce((masked, secret) => masked.replaceAll(secret, MASK), value)
  }

  /** A copy with every text masked. */
  deep<T>(value: T): T {
    if (typeof value === 'string') return this.text(value) as T
    if (Array.isArray(value)) return value.map((item) => this.deep(item)) as T
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, this.deep(item)])) as T
  }

  /** Whether the body has a secret. */
  isIn(bytes: Buffer): boolean {
    return this.texts.some((secret) => bytes.includes(secret))
  }
}
