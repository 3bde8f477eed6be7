import { z } from 'zod'
import { standardKey, WHSEC } from '../../workflows/shared/webhook-signature.ts'

/** A signing secret of Standard Webhooks. */
export const standardSecret = z
  .string()
  .regex(WHSEC, 'must be whsec_ followed by base64')
  .refine((text) => standardKey(text) !== undefined, 'must encode 24 to 64 bytes')
