import { Agent, request } from 'undici'
import { z } from 'zod'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { redactText } from '../../workflows/shared/redact.ts'
import { type EgressOptions, EgressRefused, guardedConnector } from './guarded-connector.ts'

/** An OpenAI-compatible endpoint that makes embeddings. */
export interface EmbeddingEndpoint {
  /** The URL above `/embeddings`. */
  base_url: string
  model: string
  /** The length of the vectors to ask for; null: as the model makes them. */
  dimensions: number | null
  /** The bearer token; undefined: none is sent. */
  apiKey: string | undefined
}

/** Makes embeddings. Refuses private addresses that the operator does not allow. */
export interface Embeddings {
  /** The vectors of texts, each of length 1, in their order. Throws EmbeddingError. */
  embed(
    endpoint: EmbeddingEndpoint,
    texts: readonly string[],
    options: { signal: AbortSignal; timeoutMs: number },
  ): Promise<Float32Array[]>
  close(): Promise<void>
}

/** The endpoint did not return vectors. The message is for users, and holds no text of a document. */
export class EmbeddingError extends Error {
  override readonly name = 'EmbeddingError'
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** The milliseconds that the endpoint asks to wait. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, retryable: boolean, retryAfterMs?: number) {
    super(message)
    this.retryable = retryable
    this.retryAfterMs = retryAfterMs
  }
}

/** Bytes of a response: a batch of vectors of `KNOWLEDGE.dimensions` numbers of 22 characters. */
const MAX_BYTES = KNOWLEDGE.embedded * KNOWLEDGE.dimensions * 22 + 65_536
/** A longer wait than an hour is not waited for. */
const MOST_WAIT_MS = 3_600_000

/** @param onRequest is called for each request that is sent. */
export function createEmbeddings(options: EgressOptions, onRequest: () => void = () => {}): Embeddings {
  const agent = new Agent({ connect: guardedConnector({ ...options, timeoutMs: 10_000 }) })
  return {
    async embed(endpoint, texts, { signal, timeoutMs }) {
      const { base_url, model, dimensions, apiKey } = endpoint
      const deadline = AbortSignal.timeout(timeoutMs)
      try {
        onRequest()
        const response = await request(`${base_url.replace(/\/+$/, '')}/embeddings`, {
          dispatcher: agent,
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
          },
          body: JSON.stringify({
            model,
            input: texts,
            encoding_format: 'float',
            ...(dimensions === null ? {} : { dimensions }),
          }),
          signal: AbortSignal.any([signal, deadline]),
        })
        const { statusCode: status, headers, body } = response
        const text = await readUpTo(body, MAX_BYTES)
        if (status !== 200) throw refusalOf(status, headers['retry-after'], text, apiKey)
        return vectorsOf(text, texts.length, dimensions)
      } catch (error) {
        if (error instanceof EmbeddingError || signal.aborted) throw error
        if (deadline.aborted)
          throw new EmbeddingError(
            `the embedding endpoint did not answer within ${timeoutMs / 1_000} s`,
            true,
          )
        if (error instanceof EgressRefused) throw new EmbeddingError(error.message, false)
        const { code = 'unknown' } = error as { code?: string }
        throw new EmbeddingError(`the embedding endpoint cannot be reached: ${code}`, true)
      }
    },
    close: () => agent.destroy(),
  }
}

async function readUpTo(stream: AsyncIterable<Buffer>, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > limit) throw lies(`a response of more than ${limit} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function refusalOf(
  status: number,
  retryAfter: string | string[] | undefined,
  text: string,
  apiKey: string | undefined,
): EmbeddingError {
  const given = failure.safeParse(parsed(text))
  // Some services repeat the key in their message.
  const said = given.success ? redactText(given.data.error.message).slice(0, 300) : ''
  const reason = apiKey === undefined ? said : said.replaceAll(apiKey, '[masked]')
  const seconds = Number(retryAfter)
  const retryable = status === 429 || status === 408 || status >= 500
  return new EmbeddingError(
    `the embedding endpoint answered ${status}${reason === '' ? '' : `: ${reason}`}`,
    retryable,
    retryable && seconds > 0 ? Math.min(seconds * 1_000, MOST_WAIT_MS) : undefined,
  )
}

const failure = z.object({ error: z.object({ message: z.string() }) })
const answer = z.object({
  data: z.array(z.object({ index: z.int().min(0), embedding: z.array(z.number()).min(1) })),
})

function vectorsOf(text: string, count: number, dimensions: number | null): Float32Array[] {
  const given = answer.safeParse(parsed(text))
  if (!given.success) throw lies('no JSON with `data`, a list of `index` and `embedding`')
  const found = new Map(given.data.data.map(({ index, embedding }) => [index, embedding]))
  const length = dimensions ?? given.data.data[0]?.embedding.length ?? 0
  if (length > KNOWLEDGE.dimensions)
    throw lies(`vectors of ${length} dimensions, of which at most ${KNOWLEDGE.dimensions} are stored`)
  return Array.from({ length: count }, (_, i) => {
    const vector = found.get(i)
    if (!vector) throw lies(`${found.size} vectors for ${count} texts`)
    if (vector.length !== length) throw lies(`vectors of ${vector.length} dimensions instead of ${length}`)
    const size = Math.hypot(...vector)
    if (!(size > 0)) throw lies('a vector of zeros')
    return Float32Array.from(vector, (value) => value / size)
  })
}

const lies = (what: string) => new EmbeddingError(`the embedding endpoint returned ${what}`, false)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
