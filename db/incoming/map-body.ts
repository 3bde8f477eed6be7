import { ComputeError, type Pool } from '../../workflows/compute/pool.ts'
import { PATTERN } from '../../workflows/limits.ts'
import { AppError, type ErrorDetails, type ErrorType } from '../errors.ts'
import { mapPayload } from './mapping/map.ts'
import { programsOf } from './mapping/patterns.ts'
import { type Proposal, proposeMapping } from './mapping/propose.ts'
import type { SenderRequest } from './mapping/senders/types.ts'
import type { Mapped } from './mapping/types.ts'
import { type Payload, parseBody, parseText } from './parse-body.ts'
import type { IncomingWebhook } from './types.ts'

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

export type Mapping = Pick<IncomingWebhook, 'field_mapping' | 'target_entity' | 'deduplication'>

interface Refused {
  type: ErrorType
  message: string
  details: ErrorDetails
}

/** Parses and maps a body. Pure. */
function mapBody(body: Body, mapping: Mapping): { payload: Payload; mapped: Mapped } | { refused: Refused } {
  return parsed(body, (payload) => ({ payload, mapped: mapPayload(payload, mapping, body.headers) }))
}

/** Parses a sample and proposes a mapping of it. Pure. */
function proposeFrom(body: Body, target: IncomingWebhook['target_entity']): Proposal | { refused: Refused } {
  return parsed(body, (payload) => proposeMapping(payload, target, body.headers))
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

/** What takes less than some 10 ms: to hand it to a thread costs more than it saves. Up to 1 ms for each KiB. */
const INLINE = {
  body: 8_192,
  /** Instructions of patterns × bytes. */
  patternSteps: 200_000,
} as const

/** The payload and what its mapping makes of it, computed at once or in a thread. Throws what `parseBody` throws, too. */
export async function mapIn(
  pool: Pool<typeof tasks>,
  organizationId: string,
  body: Body,
  { field_mapping, target_entity, deduplication }: Mapping,
): Promise<{ payload: Payload; mapped: Mapped }> {
  const { length } = body.content
  const programs = field_mapping.mode === 'manual' ? programsOf(field_mapping.rules) : 0
  const isSmall = length <= INLINE.body && programs * Math.min(length, PATTERN.text) <= INLINE.patternSteps
  const values = [body, { field_mapping, target_entity, deduplication }] as const
  const done = isSmall
    ? mapBody(...values)
    : await withinLimits('the body, with the patterns of the mapping,', () =>
        pool.run(organizationId, 'mapBody', ...values),
      )
  return accepted(done)
}

/** A mapping proposed from a sample, computed as `mapIn` does. */
export async function proposeIn(
  pool: Pool<typeof tasks>,
  organizationId: string,
  body: Body,
  target: IncomingWebhook['target_entity'],
): Promise<Proposal> {
  if (body.content.length <= INLINE.body) return accepted(proposeFrom(body, target))
  return accepted(
    await withinLimits('the sample', () => pool.run(organizationId, 'proposeFrom', body, target)),
  )
}

function accepted<T extends object>(done: T | { refused: Refused }): T {
  if (!('refused' in done)) return done
  const { type, message, details } = done.refused as Refused
  throw new AppError(type, message, details)
}

/** Throws `invalid_request` for a computation that is too expensive, and `unavailable` if too many wait. */
export async function withinLimits<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error
    if (error.limit === 'waiting')
      throw new AppError('unavailable', 'too much is being computed for this organization', {
        retry_after: 2,
      })
    throw new AppError('invalid_request', `${what} is too expensive: ${error.message}`, {
      hint: 'make it smaller, or divide it',
    })
  }
}
