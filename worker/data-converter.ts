import { fileURLToPath } from 'node:url'
import type { DataConverter } from '@temporalio/common'
import type { PayloadKeys } from '../db/process/config.ts'
import { EncryptionCodec } from './payload-codec.ts'

/** The module with the failure converter; the workflow bundle holds it, too. */
export const ENCODED_FAILURES = fileURLToPath(
  new URL('../workflows/bundle/encoded-failures.ts', import.meta.url),
)

/**
 * How client and workers store values and errors in Temporal: encrypted if there is a key for it. Without any key no
 * payload passes through a codec.
 */
export function dataConverterOf(keys: PayloadKeys): DataConverter {
  if (!keys.encrypt && keys.open.length === 0) return {}
  return {
    payloadCodecs: [new EncryptionCodec(keys)],
    ...(keys.encrypt && { failureConverterPath: ENCODED_FAILURES }),
  }
}
