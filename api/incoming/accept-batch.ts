import { hasRecords } from '../../db/incoming/apply.ts'
import type { NewLog } from '../../db/model/incoming/log.ts'
import type { MappedPayload } from '../../db/model/incoming/map-body.ts'
import { isNoRecord } from '../../db/model/incoming/mapping/record-key.ts'
import { hasNoEffect } from '../../db/model/incoming/mapping/types.ts'
import { nothingWritten } from '../../db/model/incoming/outcome.ts'
import { acceptRecord } from './accept-record.ts'
import { Refusal, skipped, toRefusal } from './answer.ts'
import type { Call } from './call.ts'
import { deliveryOf, deliveryOfItem } from './delivery-id.ts'
import { countRecords, takeQuota } from './limits.ts'
import { logRows, refusalRow, setUpRow } from './log.ts'

/**
 * Accepts the records of a batch, each as a request of its own: with its own outcome, delivery and log row, which can be
 * replayed alone. Opt-outs come first, the others in their order. The answer has the outcome of each, and the
 * status of the first accepted record; if none was accepted, that of the first refusal. If some may be accepted later
 * (above a quota), it has their status: the sender repeats the batch, and the others are found by their delivery. Throws
 * errors that no record caused: the sender repeats the batch, and accepted records are found by their delivery.
 */
export async function acceptBatch(call: Call, bytes: Buffer, records: MappedPayload[]): Promise<object> {
  const batch = deliveryOf(call.ctx.req.headers, call.webhook.verification, bytes)
  const items = records.map((record, index): Item => {
    const content = Buffer.from(JSON.stringify(record.payload))
    const delivery = deliveryOfItem(batch, index, content, record.mapped.deliveryId)
    const own = {
      ...call,
      bytes: content,
      content,
      contentType: 'application/json',
      delivery,
      mapped: record.mapped,
      hidden: record.hidden,
    }
    return { index, record, call: own }
  })
  await countRecords(call, records.length)
  const optOuts = items.filter(isOptOut)
  const others = items.filter((item) => !isOptOut(item))
  const outcomes = await Promise.all([...optOuts, ...others].map(outcomeOf))
  await logRows(
    call,
    outcomes.flatMap(({ row }) => row ?? []),
  )
  const failure = outcomes.find(({ refusal }) => refusal && refusal.status >= 500)?.refusal
  if (failure) throw failure
  return answerOf(outcomes.sort((one, other) => one.index - other.index))
}

interface Item {
  index: number
  record: MappedPayload
  call: Call
}

interface Outcome {
  index: number
  answer?: object
  refusal?: Refusal
  /** The log row of a record that wrote nothing else. */
  row?: NewLog
}

/** One that names its record by a key only stays in its order: a record before it may make it. */
const isOptOut = ({ record: { mapped }, call: { webhook } }: Item) =>
  mapped.fields.do_not_contact === true && hasRecords(webhook) && !isNoRecord(mapped, webhook.kind)

async function outcomeOf({ index, record, call }: Item): Promise<Outcome> {
  try {
    // The request itself was counted before its body was parsed.
    if (index > 0) await takeQuota(call)
    if (!hasNoEffect(record.mapped))
      return { index, answer: (await acceptRecord(call, call.bytes!, record)).answer }
    const message = nothingWritten(record.mapped.skip!, call.webhook)
    return { index, answer: skipped(call, message), row: setUpRow(call, message) }
  } catch (error) {
    const refusal = toRefusal(error)
    return { index, refusal, ...(refusal.status < 500 && { row: await refusalRow(call, refusal) }) }
  }
}

function answerOf(outcomes: Outcome[]): object {
  const results = outcomes.map(({ index, answer, refusal }) => ({ index, ...(answer ?? refusal!.body) }))
  const accepted = outcomes.filter(({ answer }) => answer)
  const first = accepted[0]?.answer
  const later = outcomes.find(({ refusal }) => refusal?.retryAfter !== undefined)?.refusal
  if (first && !later) {
    const message = `${accepted.length} of ${outcomes.length} records were accepted`
    return { ...first, message, warnings: undefined, results }
  }
  const { code, message, details, retryAfter } = later ?? outcomes[0]!.refusal!
  const more = { details, results, ...(retryAfter === undefined ? {} : { retryAfter }) }
  throw new Refusal(code, `${accepted.length} of ${outcomes.length} records were accepted: ${message}`, more)
}
