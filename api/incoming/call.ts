import type Koa from 'koa'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import type { Receiver } from '../../db/incoming/receiving.ts'
import type { Mapped } from '../../db/model/incoming/mapping/types.ts'
import type { Hidden } from '../../db/model/incoming/secret-fields.ts'
import type { Redactor } from '../../workflows/shared/redactor.ts'
import type { Target } from './request-url.ts'
import type { IncomingDeps } from './together.ts'

/** The state of one request to a known webhook. The log row is made of it. */
export interface Call {
  ctx: Koa.Context
  deps: IncomingDeps
  webhook: Receiver
  target: Target
  sourceIp: string
  /** `performance.now()` when it arrived. */
  started: number
  /** The valid secrets. */
  secrets: string[]
  mask: Redactor
  /** The body as received. */
  bytes?: Buffer
  /** What it says, once it was verified: without its compression, and without the token that it is of Dialpad. */
  content?: Buffer
  /** The type of `content`, if that is a record of a batch or the content of a token, and not the body as sent. */
  contentType?: string
  delivery?: Delivery | undefined
  verified: boolean
  /** Whether the log row keeps only the beginning of the payload. */
  isLogBrief?: boolean
  mapped?: Mapped
  /** What is shown of the payload, if the webhook has secret fields and the payload was parsed. */
  hidden?: Hidden | undefined
}
