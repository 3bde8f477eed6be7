import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { createEmbeddings, EmbeddingError } from '../../../db/process/embeddings.ts'
import { type EmbeddingEndpoint, startEmbeddingEndpoint } from '../../support/embedding.ts'

describe('an endpoint of embeddings', () => {
  let endpoint: EmbeddingEndpoint
  let requests = 0
  const client = createEmbeddings({ allow: ['127.0.0.0/8'] }, () => requests++)
  before(async () => {
    endpoint = await startEmbeddingEndpoint()
  })
  after(async () => {
    await client.close()
    await endpoint.close()
  })

  const embed = (texts: string[], { timeoutMs = 10_000, dimensions = 8 as number | null } = {}) =>
    client.embed({ base_url: endpoint.base_url, model: 'small', dimensions, apiKey: undefined }, texts, {
      signal: new AbortController().signal,
      timeoutMs,
    })
  const failure = async (work: Promise<unknown>): Promise<EmbeddingError> => {
    let error: unknown
    await rejects(work, (thrown) => {
      error = thrown
      return thrown instanceof EmbeddingError
    })
    return error as EmbeddingError
  }

  it('gives vectors of length 1 in the order of the texts, whatever that of the answer', async () => {
    requests = 0
    const [both, one] = await Promise.all([embed(['refund', 'parcel']), embed(['parcel'])])
    deepEqual(both[1], one[0])
    equal(Math.hypot(...both[0]!).toFixed(5), '1.00000')
    deepEqual([requests, endpoint.requests[0]!.authorization], [2, undefined])
  })

  it('is waited for no longer than allowed', async () => {
    endpoint.next.push('hang')
    const { message, retryable } = await failure(embed(['refund'], { timeoutMs: 200 }))
    deepEqual([message, retryable], ['the embedding endpoint did not answer within 0.2 s', true])
  })

  it('is not believed if it lies', async () => {
    const of = (embedding: unknown) => ({ data: [{ index: 0, embedding }] })
    for (const [body, reason] of [
      [of([0, 0, 0, 0, 0, 0, 0, 0]), /a vector of zeros/],
      [of([1, 2, 3]), /3 dimensions instead of 8/],
      [of(['1']), /no JSON with `data`/],
      [of([]), /no JSON with `data`/],
      [{ data: [] }, /0 vectors for 1 texts/],
      ['nothing', /no JSON with `data`/],
    ] as const) {
      endpoint.next.push({ status: 200, body })
      const { message, retryable } = await failure(embed(['refund']))
      match(message, reason)
      equal(retryable, false)
    }
    endpoint.next.push({ dimensions: 5_000 })
    match((await failure(embed(['refund'], { dimensions: null }))).message, /at most 4096 are stored/)
  })
})
