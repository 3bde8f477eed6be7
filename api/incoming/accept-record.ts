import type { Accepted } from '../../db/incoming/accept.ts'
import type { MappedPayload } from '../../db/model/incoming/map-body.ts'
import { traceOf } from '../http/trace.ts'
import type { Call } from './call.ts'
import { describeRequest } from './log.ts'
import { deliveryOfRecord } from './map-request.ts'

/**
 * Has the record of a request written, in one transaction with those of requests that arrive at the same time.
 * `unanswered`: the warning of one whose sender does not get the answer of the workflow.
 */
export async function acceptRecord(
  call: Call,
  bytes: Buffer,
  { payload, mapped, hidden }: MappedPayload,
  unanswered?: string,
): Promise<Accepted> {
  const { ctx, deps, webhook, started } = call
  call.delivery ??= deliveryOfRecord(call, bytes, { payload, mapped })
  const { signed, ...delivery } = call.delivery
  const log = { ...describeRequest(call), ...delivery }
  const request = { payload, mapped, hidden, trace: traceOf(ctx), started, log, signed, unanswered }
  const acceptance = await deps.together.accept(webhook, request, call.content!.length)
  if ('answer' in acceptance) return acceptance
  call.mapped = acceptance.mapped
  throw acceptance.error
}
