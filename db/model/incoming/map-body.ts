import { AppError, type ErrorDetails, type ErrorType } from '../errors.ts'
import { mapPayload } from './mapping/map.ts'
import { type Proposal, proposeMapping } from './mapping/propose.ts'
import type { SenderRequest } from './mapping/senders/types.ts'
import type { Mapped } from './mapping/types.ts'
import { type Payload, parseBody, parseText } from './parse-body.ts'
import type { IncomingWebhook, TargetKind } from './types.ts'

/** What a thread computes. */
export const tasks = { mapBody, proposeFrom }

/** The body of a request to a webhook: its bytes, or its text from the log. */
export interface Body {
  content: Uint8Array | string
  /** Its Content-Type. */
  type: string
  /** The headers by which senders are recognised. */
  headers?: SenderRequest['headers']
}

export type Mapping = Pick<IncomingWebhook, 'field_mapping' | 'kind' | 'deduplication'>

export interface Refused {
  type: ErrorType
  message: string
  details: ErrorDetails
}

/** Parses and maps a body. Pure. */
export function mapBody(
  body: Body,
  mapping: Mapping,
): { payload: Payload; mapped: Mapped } | { refused: Refused } {
  return parsed(body, (payload) => ({ payload, mapped: mapPayload(payload, mapping, body.headers) }))
}

/** Parses a sample and proposes a mapping of it. Pure. */
export function proposeFrom(body: Body, kind: TargetKind): Proposal | { refused: Refused } {
  return parsed(body, (payload) => proposeMapping(payload, kind, body.headers))
}

/** An AppError is returned: a thread could not throw it. */
function parsed<T>({ content, type }: Body, work: (payload: Payload) => T): T | { refused: Refused } {
  try {
    return work(
      typeof content === 'string'
        ? parseText(content, type)
        : parseBody(Buffer.from(content.buffer, content.byteOffset, content.byteLength), type),
    )
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { refused: { type: error.type, message: error.message, details: error.details } }
  }
}
