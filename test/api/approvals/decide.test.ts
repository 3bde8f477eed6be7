import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { approvalToken } from '../../../db/process/approval-links.ts'
import { cancelRun } from '../../../db/runs/moves/ends.ts'
import { testActor } from '../../support/database.ts'
import { until } from '../../support/until.ts'
import { withApiAndWorker } from '../../support/with-api.ts'
import { queueRun, untilRun } from '../../support/worker.ts'

describe('the link of an approval', () => {
  const suite = withApiAndWorker()

  /** A run that waits for an approval, and the path of its link. */
  async function asked(config: Record<string, unknown> = {}) {
    const { organizationId, secretsKey } = suite.api
    const runId = await queueRun(suite.db, organizationId, {
      name: 'Discount',
      nodes: [{ id: 'ask', type: 'approval', config: { title: 'May <b>I</b>?', ...config } }],
      outputs: { output: '{{ nodes.ask.output }}' },
    })
    for (;;) {
      const wait = await suite.db.system('run_waits').where({ run_id: runId }).first()
      if (wait) {
        const key = { organization_id: organizationId, run_id: runId, id: wait.id as string }
        return { runId, key, path: `/approvals/${approvalToken(secretsKey, key)}` }
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const JSON_TYPE = { 'Content-Type': 'application/json' }
  const get = (path: string, accept = 'application/json') =>
    suite.api.request('GET', path, { key: null, headers: { Accept: accept } })
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    suite.api.request('POST', path, {
      key: null,
      body,
      headers: { Accept: 'application/json', ...JSON_TYPE, ...headers },
    })

  it('is attributed where a caller that could decide as itself reads it', async () => {
    const { api, db } = suite
    const { status, body: made } = await api.request('POST', '/v1/workflows', {
      body: {
        spec: [
          'name: Notify',
          'trigger: {type: event, events: [approval.requested]}',
          'nodes:',
          '  say: {type: set_fields, config: {fields: {text: "Decide: {{ trigger.data.link }}"}}}',
        ].join('\n'),
      },
    })
    assert.equal(status, 201, JSON.stringify(made))
    await api.request('POST', `/v1/workflows/${made.workflow_id}/activate`)
    const hook = { name: 'Chat', url: 'https://chat.example.com/', events: ['approval.requested'] }
    const { body: webhook } = await api.request('POST', '/v1/webhooks/outgoing', { body: hook })
    const { runId, path } = await asked()
    const token = path.split('/').at(-1)!
    const listed = (url: string) =>
      until(async () => {
        const { body } = await api.request('GET', url)
        return body.data.length > 0 && body.data
      })
    const runs = await listed(`/v1/runs?workflow_id=${made.workflow_id}&status=completed`)
    const deliveries = await listed(`/v1/webhooks/outgoing/${webhook.id}/deliveries`)
    const run = await api.request('GET', `/v1/runs/${runs[0].run_id}`)
    const delivery = await api.request('GET', `/v1/deliveries/${deliveries[0].id}`)
    const stream = await api.request('GET', `/v1/runs/${runs[0].run_id}/stream`)
    const shown = JSON.stringify([run.body, delivery.body, stream.body])
    assert.ok(!shown.includes(token), 'the link that everybody gets is not shown')
    assert.match(run.body.nodes[0].output.text, /^Decide: http.*\/approvals\/\[masked\]$/)
    assert.match(delivery.body.data.link, /\/approvals\/\[masked\]$/)
    const stored = await db
      .system('events')
      .where({ name: 'approval.requested' })
      .orderBy('id', 'desc')
      .first()
    assert.ok(stored.data.link.endsWith(token), 'the receiver gets it')

    const { body: waiting } = await api.request('GET', `/v1/runs/${runId}`)
    const { pathname } = new URL(waiting.waits[0].approval.link, 'http://localhost')
    assert.notEqual(pathname, path)
    const answer = await post(pathname, { decision: 'approved' })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    const { id: keyId } = (await api.request('GET', '/v1/me')).body.key ?? {}
    const { outputs } = await untilRun(db, runId)
    const by = (outputs!.output as { answered_by: { shown_to: { type: string; id: string } } }).answered_by
    assert.equal(by.shown_to.type, 'key')
    assert.match(by.shown_to.id, /^[0-9a-f-]{36}$/)
    if (keyId) assert.equal(by.shown_to.id, keyId)
    for (const cut of [pathname.slice(0, -1), pathname.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))])
      assert.equal((await get(cut)).status, 404)
  })

  it('shows the request without deciding, and decides by POST', async () => {
    const { runId, path } = await asked({ message: 'For Acme.', timeout: '1h' })
    for (const _ of [1, 2]) {
      const { status, body } = await get(path)
      assert.deepEqual(
        [status, body.status, body.title, body.message, body.run_id],
        [200, 'waiting', 'May <b>I</b>?', 'For Acme.', runId],
      )
    }
    const head = await fetch(suite.api.url + path, { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal((await suite.db.system('run_waits').where({ run_id: runId }).first()).answered_at, null)
    const answer = await post(path, { decision: 'approved', comment: 'Fine.' })
    assert.deepEqual([answer.status, answer.body.status], [200, 'approved'])
    const { outputs } = await untilRun(suite.db, runId)
    assert.deepEqual(
      { ...(outputs!.output as object), answered_at: null },
      { decision: 'approved', comment: 'Fine.', answered_by: { type: 'link', id: null }, answered_at: null },
    )
    assert.equal((await get(path)).body.status, 'approved')
  })

  it('is a page for browsers, which escapes texts, loads nothing and is not cached', async () => {
    const { runId, path } = await asked()
    const browser = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const { status, headers, body } = await get(path, browser)
    assert.equal(status, 200)
    assert.match(headers.get('content-type')!, /^text\/html/)
    assert.match(body, /May &lt;b&gt;I&lt;\/b&gt;\?/)
    assert.match(body, /<form method="post">/)
    assert.doesNotMatch(body, /<script|https?:/)
    assert.match(
      headers.get('content-security-policy')!,
      /default-src 'none'.*form-action 'self'.*frame-ancestors 'none'/,
    )
    assert.deepEqual(
      ['cache-control', 'referrer-policy'].map((name) => headers.get(name)),
      ['no-store', 'no-referrer'],
    )
    const form = { 'Content-Type': 'application/x-www-form-urlencoded', Accept: browser }
    const answer = await post(path, 'comment=&decision=rejected', form)
    assert.deepEqual([answer.status, /Rejected on/.test(answer.body)], [200, true])
    const again = await post(path, 'comment=&decision=approved', form)
    assert.deepEqual([again.status, /Answered already/.test(again.body)], [409, true])
    const { outputs } = await untilRun(suite.db, runId)
    assert.equal((outputs!.output as { decision: string }).decision, 'rejected')
  })

  it('is refused if it is forged, of another key, of another run, or cut', async () => {
    const { runId, key, path } = await asked()
    const other = await asked()
    const token = path.slice('/approvals/'.length)
    const first = token[0] === 'A' ? 'B' : 'A'
    for (const forged of [
      first + token.slice(1),
      approvalToken(randomBytes(32), key),
      approvalToken(suite.api.secretsKey, { ...key, run_id: other.runId }),
      token.slice(0, -1),
      `${token}A`,
      `${token}!`,
      'x',
      '%00',
    ]) {
      assert.equal((await get(`/approvals/${forged}`)).status, 404, forged)
      const { status, body } = await post(`/approvals/${forged}`, { decision: 'approved' })
      assert.deepEqual([status, body.error.type], [404, 'not_found'], forged)
    }
    assert.equal((await suite.db.system('run_waits').where({ run_id: runId }).first()).answered_at, null)
    for (const path of [`/approvals/${token}`, other.path]) await post(path, { decision: 'approved' })
    await untilRun(suite.db, runId)
  })

  it('is refused after it has expired, and after its run was cancelled', async () => {
    const late = await asked({ timeout: '1s' })
    await untilRun(suite.db, late.runId)
    const cancelled = await asked()
    await untilRun(suite.db, cancelled.runId, ['running'])
    await suite.db.tenant(suite.api.organizationId, testActor, (tx) => cancelRun(tx, cancelled.runId))
    await untilRun(suite.db, cancelled.runId)
    for (const { path } of [late, cancelled]) {
      const { status, body } = await post(path, { decision: 'approved' })
      assert.deepEqual([status, body.error.type], [410, 'gone'])
      assert.equal((await get(path)).status, 410)
      assert.match((await get(path, 'text/html')).body, /Too late/)
    }
  })

  it('refuses what is no decision, with reasons', async () => {
    const { runId, path } = await asked()
    const wrong = await post(path, { decision: 'maybe', note: 1 })
    assert.deepEqual(
      [wrong.status, wrong.body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')).sort()],
      [422, ['body.decision', 'body.note']],
    )
    assert.equal((await post(path, '{')).status, 400)
    assert.equal((await post(path, 'decision: approved', { 'Content-Type': 'text/plain' })).status, 415)
    assert.equal((await post(path, { decision: 'approved', comment: 'x'.repeat(70_000) })).status, 413)
    const put = await fetch(suite.api.url + path, { method: 'PUT' })
    assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, POST'])
    await post(path, { decision: 'approved' })
    await untilRun(suite.db, runId)
  })

  it('takes one of two decisions that come at the same time', async () => {
    const { runId, path } = await asked()
    const statuses = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const { status } = await post(path, { decision: n % 2 ? 'approved' : 'rejected' })
        return status
      }),
    )
    assert.deepEqual(statuses.sort(), [200, 409, 409, 409, 409, 409])
    await untilRun(suite.db, runId)
  })
})
