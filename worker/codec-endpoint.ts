import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { PayloadCodec } from '@temporalio/common'
import proto from '@temporalio/proto'
import { z } from 'zod'
import type { Logger } from '../db/process/log.ts'
import { isFromOperator } from '../db/process/operator-request.ts'

export interface CodecEndpoint {
  codec: PayloadCodec
  /** CODEC_TOKEN. */
  token: string | undefined
  /** The origin of the Temporal UI, whose pages may call the endpoint. */
  uiOrigin: string | undefined
  log: Logger
}

/** Temporal limits the payloads of a request to 4 MB; base64 takes a third more. */
const MOST_BYTES = 8 * 1_024 * 1_024

const payloads = z.object({
  payloads: z.array(
    z.object({ metadata: z.record(z.string(), z.string()).default({}), data: z.string().default('') }),
  ),
})

/**
 * The names under which a client on this machine reaches this process: another one is a page that rebinds its DNS name.
 */
const LOCAL_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/

/**
 * Answers `POST /codec/encode` and `/codec/decode`, which the UI and the CLI of Temporal call to show encrypted payloads
 * (https://docs.temporal.io/codec-server). Bytes are base64, as in the JSON form of Temporal's messages.
 */
export async function answerCodec(
  request: IncomingMessage,
  response: ServerResponse,
  verb: string,
  { codec, token, uiOrigin, log }: CodecEndpoint,
): Promise<void> {
  const answer = (status: number, body: object, headers: Record<string, string> = {}) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body))
  const refuse = (status: number, type: string, message: string) =>
    answer(status, { error: { type, message } })

  if (uiOrigin !== undefined && request.headers.origin === uiOrigin) {
    response.setHeader('Access-Control-Allow-Origin', uiOrigin)
    response.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type, X-Namespace')
    // For a proxy in front of it that knows operators by their cookies.
    response.setHeader('Access-Control-Allow-Credentials', 'true')
    response.setHeader('Vary', 'Origin')
  }
  if (verb !== 'encode' && verb !== 'decode')
    return refuse(404, 'not_found', '/codec/encode and /codec/decode exist')
  if (request.method === 'OPTIONS') return void response.writeHead(204).end()
  if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'use POST')
  const isLocal = LOCAL_HOST.test(request.headers.host ?? '')
  if (!isFromOperator(request, token) || (token === undefined && !isLocal))
    return refuse(401, 'unauthorized', 'send CODEC_TOKEN as a bearer token')
  if (Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY) > MOST_BYTES)
    return refuse(413, 'payload_too_large', `Content-Length must be at most ${MOST_BYTES} bytes`)
  const parsed = payloads.safeParse(await readJson(request))
  if (!parsed.success) return refuse(400, 'validation_error', z.prettifyError(parsed.error))
  const { Payload } = proto.temporal.api.common.v1
  try {
    const converted = await codec[verb](parsed.data.payloads.map((one) => Payload.fromObject(one)))
    log.info({ verb, payloads: converted.length }, 'an operator converted payloads of Temporal')
    answer(200, {
      payloads: converted.map((one) => Payload.toObject(Payload.fromObject(one), { bytes: String })),
    })
  } catch (error) {
    refuse(422, 'not_convertible', error instanceof Error ? error.message : String(error))
  }
}

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  try {
    return JSON.parse(await text(request))
  } catch {
    return undefined
  }
}
