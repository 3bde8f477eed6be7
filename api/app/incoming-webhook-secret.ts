import { invalid } from '../../db/model/errors.ts'
import type { Verification } from '../../db/model/incoming/types.ts'
import { standardSecret } from '../http/standard-secret.ts'
import { isHex } from '../incoming/signatures.ts'

/** Throws validation_error for a new secret that the verification cannot use. */
export function assertSecret({ type }: Verification, secret: string): void {
  const msg = problemOf(type, secret)
  if (msg)
    throw invalid([
      {
        loc: ['body', 'secret'],
        msg: `${msg} for ${type}`,
        type: 'invalid_format',
        hint: 'copy the secret of the sender unchanged, or omit it to generate one',
      },
    ])
}

/** Throws validation_error for a verification that cannot use the webhook's secret. */
export function assertStoredSecret({ type }: Verification, secret: string): void {
  const msg = problemOf(type, secret)
  if (msg)
    throw invalid([
      {
        loc: ['body', 'verification', 'type'],
        msg: `${type} does not accept the secret of the webhook: it ${msg}`,
        type: 'invalid_value',
        hint: 'rotate the secret first: POST …/rotate-secret',
      },
    ])
}

function problemOf(type: Verification['type'], secret: string): string | undefined {
  if (type === 'close') return isHex(secret) ? undefined : 'must be hexadecimal'
  if (type !== 'standard_webhooks') return undefined
  return standardSecret.safeParse(secret).error?.issues[0]?.message
}
