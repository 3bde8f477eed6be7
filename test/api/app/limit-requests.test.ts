import assert from 'node:assert/strict'
import { MAX_PUBLIC_REQUESTS, MAX_USER_REQUESTS } from '../../../api/app/limit-requests.ts'
import { openSession } from '../../../db/access/sessions.ts'
import { boundedWork } from '../../../db/process/bounded-work.ts'
import { leaveOf } from '../../support/limits.ts'
import { sessionHeaders } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('the limits of /app', () => {
  const suite = withApi({ TRUSTED_PROXIES: '1' })
  const count = (answers: { status: number }[], status: number) =>
    answers.filter((answer) => answer.status === status).length

  it('count the requests of a user, over all sessions', async () => {
    const first = await sessionHeaders(suite.db, suite.api, 'owner')
    const { user_id } = await suite.db.system('sessions').first('user_id')
    const { token } = await openSession(suite.db.system, user_id, suite.api.organizationId)
    const second = { Cookie: `agx_session=${token}` }
    const send = (headers: Record<string, string>, times: number) =>
      Promise.all(
        Array.from({ length: times }, () => suite.api.request('GET', '/app/session', { key: null, headers })),
      )
    const { organizationId } = suite.api
    await leaveOf(suite.db, { organizationId, subject: `user:${user_id}`, limit: MAX_USER_REQUESTS }, 20)
    const both = (await Promise.all([send(first, 15), send(second, 15)])).flat()
    assert.deepEqual([count(both, 200), count(both, 429)], [20, 10])
    const [refused] = await send(first, 1)
    assert.equal(refused!.status, 429)
    assert.ok(Number(refused!.headers.get('retry-after')) >= 1)
    const other = await sessionHeaders(suite.db, suite.api, 'member')
    assert.equal((await send(other, 1))[0]!.status, 200)
  })

  it('count the requests of an address to public routes, valid or not', async () => {
    const send = () =>
      suite.api.request('POST', '/app/session', {
        key: null,
        body: {},
        headers: { 'X-Forwarded-For': '192.0.2.9' },
      })
    await leaveOf(suite.db, { subject: 'public 192.0.2.9', limit: MAX_PUBLIC_REQUESTS }, 5)
    const answers = await Promise.all(Array.from({ length: 10 }, send))
    assert.equal(count(answers, 422), 5)
    assert.equal(count(answers, 429), 5)
  })

  it('bound the passwords that are hashed at once: 503 with Retry-After beyond', async () => {
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        suite.api.request('POST', '/app/session', {
          key: null,
          body: { email: `nobody-${i}@example.com`, password: 'wrong horse' },
          headers: { 'X-Forwarded-For': `198.51.100.${i}` },
        }),
      ),
    )
    const refused = answers.filter(({ status }) => status === 503)
    assert.ok(refused.length > 0)
    assert.equal(count(answers, 401), 16 - refused.length)
    for (const { headers, body } of refused) {
      assert.equal(body.error.type, 'unavailable')
      assert.equal(headers.get('retry-after'), '2')
    }
  })
})

describe('bounded work', () => {
  it('runs in order, at most so much at a time, and refuses what cannot wait', async () => {
    const run = boundedWork({ concurrent: 2, waiting: 3 })
    const started: number[] = []
    const ends: (() => void)[] = []
    const results = Array.from({ length: 6 }, (_, i) =>
      run(() => {
        started.push(i)
        return new Promise<void>((resolve) => ends.push(resolve))
      }).then(
        () => 'done',
        (error) => error.type,
      ),
    )
    assert.equal(await results[5], 'unavailable')
    assert.deepEqual(started, [0, 1])
    for (let i = 0; i < 5; i++) {
      ends[i]!()
      await results[i]
      assert.deepEqual(started, [0, 1, 2, 3, 4].slice(0, Math.min(5, i + 3)))
    }
    assert.deepEqual(await Promise.all(results), ['done', 'done', 'done', 'done', 'done', 'unavailable'])
  })

  it('frees the place of work that fails', async () => {
    const run = boundedWork({ concurrent: 1, waiting: 0 })
    await assert.rejects(
      run(() => Promise.reject(new Error('broken'))),
      /broken/,
    )
    assert.equal(await run(async () => 'next'), 'next')
  })
})
