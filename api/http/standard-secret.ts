import { z } from 'zod'

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/

/** The key of a Standard Webhooks secret: 24 to 64 bytes. Undefined for any other text. */
export function standardKey(secret: string): Buffer | undefined {
  // Buffer.from ignores what is not base64: a text of dots would be an empty key.
  const encoded = SECRET.exec(secret)?.[1]
  if (encoded === undefined) return undefined
  const key = Buffer.from(encoded, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}

/** A secret of Standard Webhooks. */
export const standardSecret = z
  .string()
  .regex(SECRET, 'must be whsec_ followed by base64')
  .refine((text) => standardKey(text) !== undefined, 'must encode 24 to 64 bytes')
