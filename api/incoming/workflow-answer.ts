import type { Accepted } from '../../db/incoming/accept.ts'
import type { SenderResponse } from '../../workflows/effects/responses.ts'
import { forLog } from '../http/errors.ts'
import type { Call } from './call.ts'

/** No browser may run scripts of a workflow in the origin of the API. */
const POLICY = "sandbox; default-src 'none'"

/**
 * Has a request accepted. @returns the body of the answer: that of a node `respond` of one of its runs, if the webhook
 * waits for it and one answers in time; a failure if all have ended without an answer and one of them failed; else the
 * usual one. The runs are stored with the delivery: if this process dies while it waits, a repetition of the request gets
 * the answer from another process.
 *
 * `accept` gets a warning if too many requests wait already, and writes it into the log row of a request that would have
 * waited. So the slot is taken before the transaction of the request.
 */
export async function answerOfWorkflow(
  call: Call,
  accept: (warning: string | undefined) => Promise<Accepted>,
): Promise<object | string> {
  const { ctx, deps, webhook } = call
  const slot = webhook.response_wait > 0 ? deps.responses.tryToTake(webhook.organization_id) : undefined
  const isFree = typeof slot === 'function'
  try {
    const accepted = await accept(slot && !isFree ? noSlot(slot) : undefined)
    const { response, failed } = await responseOf(call, accepted, isFree)
    if (failed) ctx.status = 502
    if (!response) return failed ? FAILED : accepted.answer
    ctx.set(response.headers)
    ctx.set('Content-Security-Policy', POLICY)
    ctx.status = response.status
    ctx.set('Content-Type', response.content_type)
    return response.body
  } finally {
    if (isFree) slot()
  }
}

/** So that a sender who needs the answer does not take the usual one for it. */
const FAILED = {
  success: false,
  error: 'workflow_failed',
  message:
    'the request was accepted, but its workflow has ended without an answer: it failed or was cancelled',
}

const noSlot = ({ holder, limit }: { holder: string; limit: number }) =>
  `${limit} requests of the ${holder} were waiting for a workflow: the sender got the usual answer instead of that of the workflow`

async function responseOf(call: Call, { runIds, isRepeated }: Accepted, mayWait: boolean): Promise<Outcome> {
  const { deps, webhook, ctx } = call
  if (runIds.length === 0) return {}
  const read = () => readResponse(call, runIds)
  const earlier = isRepeated ? await read() : undefined
  if (earlier || !mayWait) return earlier ?? {}
  const gone = new AbortController()
  const onClose = () => gone.abort()
  ctx.res.once('close', onClose)
  try {
    return (await deps.runEnds.wait(runIds, webhook.response_wait * 1_000, gone.signal, read)) ?? {}
  } catch (error) {
    // The request is written, so its sender must not hear of a failure.
    const { organization_id, id } = webhook
    deps.log.warn(
      { err: forLog(error), organization_id, webhook_id: id },
      'cannot read the answer of a workflow',
    )
    return {}
  } finally {
    ctx.res.off('close', onClose)
  }
}

/** What the runs of a request have answered; without an answer, whether one of them failed. */
interface Outcome {
  response?: SenderResponse
  failed?: boolean
}

/** The first answer, or none if all runs have ended without one. Undefined while one can still answer. */
async function readResponse(
  { deps, webhook }: Call,
  runIds: readonly string[],
): Promise<Outcome | undefined> {
  const found = await Promise.all(
    runIds.map((id) => deps.together.findResponse({ organizationId: webhook.organization_id, id })),
  )
  const response = found.find((one) => one?.response)?.response
  if (response) return { response }
  if (!found.every((one) => one === undefined || one.ended)) return undefined
  return { failed: found.some((one) => one?.failed) }
}
