import { deepEqual, equal, ok } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { withApi } from '../../support/with-api.ts'

/** More than the connections of the pool, and less than may wait for a thread. */
const UPLOADS = 12
const LARGE = '<p>word <b>bold</b></p>'.repeat(20_000)

describe('documents that are divided in a thread', () => {
  const suite = withApi()

  const collection = async (name: string): Promise<string> =>
    (await suite.api.request('POST', '/v1/knowledge/collections', { body: { name } })).body.id
  const upload = (id: string, title: string, headers = {}) =>
    suite.api.request('POST', `/v1/knowledge/collections/${id}/documents`, {
      body: { title, body: LARGE, format: 'html' },
      headers,
    })

  for (const keyed of [false, true])
    it(`hold no connection meanwhile, but for the one that writes${keyed ? '; with idempotency keys too' : ''}`, () =>
      assertFree(keyed))

  async function assertFree(keyed: boolean): Promise<void> {
    const id = await collection(`Many ${keyed}`)
    let ended = 0
    const uploads = Array.from({ length: UPLOADS }, async (_, n) => {
      const { status } = await upload(id, `Document ${n}`, keyed ? { 'Idempotency-Key': `upload-${n}` } : {})
      ended += 1
      return status
    })
    // The first ones wait for a thread.
    while (ended === 0) await sleep(20)
    let most = 0
    for (; ended < UPLOADS - 2; await sleep(5)) most = Math.max(most, suite.db.poolUse().tenant.used)
    ok(most < UPLOADS / 2, `${most} uploads held a connection`)
    deepEqual(new Set(await Promise.all(uploads)), new Set([201]))
  }

  it('have the passages of their last text and format', async () => {
    const { body: created } = await upload(await collection('Changed'), 'Document')
    const path = `/v1/knowledge/documents/${created.id}`
    const change = async (body: object) => (await suite.api.request('PATCH', path, { body })).body
    const asText = await change({ format: 'text' })
    equal(asText.version, 2)
    equal((await change({ body: 'Short' })).passages, 1)
    equal((await change({ body: LARGE, format: 'html' })).passages, created.passages)
  })
})
