import { AppError, type ErrorDetails, type ErrorType } from '../../db/errors.ts'
import { mapPayload } from '../../db/incoming/mapping/map.ts'
import type { SenderRequest } from '../../db/incoming/mapping/senders/types.ts'
import type { Mapped } from '../../db/incoming/mapping/types.ts'
import { type Payload, parseBody } from '../../db/incoming/parse-body.ts'
import type { IncomingWebhook } from '../../db/incoming/types.ts'
import { compile } from '../../workflows/definition/compile.ts'
import type { Program } from '../../workflows/definition/types.ts'
import { type Validated, validateDefinition, validateSpec } from '../../workflows/definition/validate.ts'
import { catalogue } from '../v1/catalogue.ts'

/** What the API computes for a tenant: in the event loop where it is small, else in a thread. All of it is pure. */
export const tasks = { validate, mapBody }

export interface Source {
  spec?: string | undefined
  definition?: Record<string, unknown> | undefined
}

/** Checks a spec, or else a raw definition, and compiles it where it is valid. */
function validate({ spec, definition }: Source): Validated & { program?: Program } {
  const validated =
    spec === undefined ? validateDefinition(definition, catalogue) : validateSpec(spec, catalogue)
  return validated.definition ? { ...validated, program: compile(validated.definition) } : validated
}

/** The body of a request to a webhook. */
export interface Body {
  bytes: Uint8Array
  /** Its Content-Type. */
  type: string
  /** The headers by which senders are recognised. */
  headers?: SenderRequest['headers']
}

export type Mapping = Pick<IncomingWebhook, 'field_mapping' | 'target_entity'>

/** Parses and maps a webhook's body. An AppError is returned: a thread could not throw it. */
function mapBody(
  { bytes, type, headers = {} }: Body,
  mapping: Mapping,
): { payload: Payload; mapped: Mapped } | { refused: Refused } {
  try {
    const payload = parseBody(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), type)
    return { payload, mapped: mapPayload(payload, mapping, headers) }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { refused: { type: error.type, message: error.message, details: error.details } }
  }
}

export interface Refused {
  type: ErrorType
  message: string
  details: ErrorDetails
}
