import { Redactor } from '../../../workflows/shared/redactor.ts'
import { MASK } from '../../../workflows/shared/secret-names.ts'
import { AppError, type ErrorDetails, type ErrorType } from '../errors.ts'
import { type BatchConfig, itemsOf } from './batch.ts'
import { mapPayload } from './mapping/map.ts'
import { type Proposal, proposeMapping } from './mapping/propose.ts'
import type { SenderRequest } from './mapping/senders/types.ts'
import type { Mapped } from './mapping/types.ts'
import { isJson, isXml, type Payload, parseBody, parseText } from './parse-body.ts'
import { type Hidden, SecretFields } from './secret-fields.ts'
import type { IncomingWebhook, TargetKind } from './types.ts'

/** What a thread computes. */
export const tasks = { mapBody, mapRequest, proposeFrom }

/** The body of a request to a webhook: its bytes, or its text from the log. */
export interface Body {
  content: Uint8Array | string
  /** Its Content-Type. */
  type: string
  /** The headers by which senders are recognised. */
  headers?: SenderRequest['headers']
}

export type Mapping = Pick<
  IncomingWebhook,
  'field_mapping' | 'kind' | 'deduplication' | 'listeners' | 'secret_fields' | 'sender' | 'also_writes'
>

export interface Refused {
  type: ErrorType
  message: string
  details: ErrorDetails
}

/** Parses and maps a body; of a batch (in a sample or an old log entry) it takes the first record. Pure. */
export function mapBody(body: Body, mapping: Mapping): MappedPayload | { refused: Refused } {
  return parsed(body, (whole) => {
    const items = itemsIn(whole, body, mapping)
    const payload = items?.[0] ?? whole
    const mapped = mapPayload(payload, mapping, body.headers)
    const hidden = hiddenIn(whole, mapping)(payload, mapped)
    if (!items || items.length === 1) return { payload, mapped, ...hidden }
    const warning = `the first of ${items.length} records is shown`
    return {
      payload,
      ...hidden,
      mapped: { ...mapped, batch: items.length, warnings: [...(mapped.warnings ?? []), warning] },
    }
  })
}

/** A record of a request, and what the mapping makes of it. */
export interface MappedPayload {
  payload: Payload
  mapped: Mapped
  /** What is shown of it, if the webhook has secret fields. */
  hidden?: Hidden
}

/** What a request has: one record, or those of a batch. */
export interface MappedRequest {
  isBatch: boolean
  records: MappedPayload[]
}

/** Parses and maps the body of a request, which may be a batch. Pure. */
export function mapRequest(body: Body, webhook: RequestConfig): MappedRequest | { refused: Refused } {
  return parsed(body, (payload) => {
    const items = itemsIn(payload, body, webhook)
    const hide = hiddenIn(payload, webhook)
    return {
      isBatch: items !== undefined && items.length > 1,
      records: (items ?? [payload]).map((one) => {
        const mapped = mapPayload(one, webhook, body.headers)
        return { payload: one, mapped, ...hide(one, mapped) }
      }),
    }
  })
}

export type RequestConfig = BatchConfig & Pick<IncomingWebhook, 'secret_fields'>

/** What is shown of the records of a body, for a webhook that has secret fields. */
function hiddenIn(body: Payload, { secret_fields, field_mapping }: RequestConfig) {
  const fields = secret_fields.length > 0 ? new SecretFields(body, secret_fields) : undefined
  return (record: Payload, mapped: Mapped): Pick<MappedPayload, 'hidden'> =>
    fields ? { hidden: fields.hide(record, mapped, field_mapping) } : {}
}

/** Parses a sample and proposes a mapping of it. Pure. */
export function proposeFrom(
  body: Body,
  kind: TargetKind,
  secretFields: string[],
  sender: string | null = null,
): Proposal | { refused: Refused } {
  return parsed(body, (payload) => {
    const [first = payload] =
      itemsIn(payload, body, { field_mapping: { mode: 'automatic' }, kind, sender }) ?? []
    const proposal = proposeMapping(first, kind, body.headers, sender)
    const secrets = new SecretFields(payload, secretFields)
    const { values } = secrets.hide(first, { fields: {}, sources: {} }, { mode: 'automatic' })
    const redactor = new Redactor(values)
    const proposed = proposal.proposed.map((one) => ({
      ...one,
      value:
        secrets.writes(one.rule.to) || secrets.isSecret(first, one.rule.from)
          ? MASK
          : redactor.value(one.value),
    }))
    return { ...proposal, proposed }
  })
}

const itemsIn = (payload: Payload, { type }: Body, webhook: BatchConfig): Payload[] | undefined =>
  isJson(type) || isXml(type) ? itemsOf(payload, webhook, isJson(type)) : undefined

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
