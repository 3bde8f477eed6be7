import { deepEqual, equal, match, ok } from 'node:assert/strict'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { withMails } from '../support/with-mails.ts'
import { queueRun, untilRun } from '../support/worker.ts'

describe('the limits of mails', () => {
  const suite = withMails(undefined, () => ({ mailMinute: 2 }))
  const config = { to: '{{ item }}', subject: 'Hello', text: 'Hello.' }
  const loop = (items: string[], more: object = {}) => ({
    nodes: [
      { id: 'each', type: 'for_each', config: { items, concurrency: 40, on_item_error: 'continue' } },
      { id: 'mail', type: 'send_email', config: { ...config, ...more } },
    ] as NodeSpec[],
    edges: [{ from: 'each', handle: 'item', to: 'mail' }],
  })
  const organization = (values: object) =>
    suite.db.system('organizations').where({ id: suite.api.organizationId }).update(values)
  const limits = (values: object) => organization({ limits: JSON.stringify(values) })
  const forget = () => suite.db.system('limit_windows').where('subject', 'like', 'mail:%').delete()
  const addresses = (count: number, at = 'example.com') =>
    Array.from({ length: count }, (_, n) => `a${n}@${at}`)
  const nodesOf = (run_id: string) =>
    suite.db.system('run_nodes').where({ run_id, node_id: 'mail' }).orderBy('path')
  const received = () => suite.smtp.received.flatMap(({ to }) => to)

  beforeEach(async () => {
    await forget()
    suite.smtp.received.length = 0
  })

  it('let nodes wait for the next minute, which holds no slot, counts no attempt, and loses nothing', async () => {
    await limits({ mail_recipients_per_minute: 3 })
    const id = await queueRun(suite.db, suite.api.organizationId, loop(addresses(9)))
    const waiting = async () =>
      (await nodesOf(id)).find(({ status, next_attempt_at }) => status === 'running' && next_attempt_at)
    let node = await waiting()
    for (; !node; node = await waiting()) await new Promise((resolve) => setTimeout(resolve, 20))
    equal(node.error.code, 'mail_rate_limited')
    match(
      node.error.message,
      /^The mail waits until .* UTC: the plan allows mails to 3 recipients per minute\.$/,
    )
    deepEqual([node.attempt, node.attempt_token], [1, null])
    equal((await untilRun(suite.db, id)).status, 'completed')
    deepEqual(received().sort(), addresses(9).sort())
    const windows = await suite.db.system('limit_windows').where({ subject: 'mail:minute' })
    ok(windows.length >= 3 && windows.every(({ used }) => used <= 3), JSON.stringify(windows))
    ok((await nodesOf(id)).every(({ attempt }) => attempt === 1))
  })

  it('send a mail whose turn comes before its wait is recorded', async () => {
    await limits({ mail_recipients_per_minute: 1 })
    await suite.db.asOwner(async (owner) => {
      await owner.query(`create function past_its_turn() returns trigger language plpgsql as $$ begin
        perform pg_sleep(0.1 + greatest(0, extract(epoch from new.window_start - clock_timestamp())));
        return new; end $$`)
      await owner.query(`create trigger slow before insert on limit_windows for each row
        when (new.subject like 'mail:turn:%') execute function past_its_turn()`)
    })
    try {
      const id = await queueRun(suite.db, suite.api.organizationId, loop(addresses(3)))
      await untilRun(suite.db, id)
      for (const { status, error, attempt } of await nodesOf(id))
        deepEqual([status, error, attempt], ['completed', null, 1])
      deepEqual(received().sort(), addresses(3))
    } finally {
      await suite.db.asOwner((owner) => owner.query('drop function past_its_turn cascade'))
    }
  })

  it('let a run that waits for its turn hold no slot of its organization', async () => {
    await limits({ mail_recipients_per_minute: 1, max_running: 1 })
    const slow = await queueRun(suite.db, suite.api.organizationId, loop(addresses(12, 'slow.example.com')))
    const quick = await queueRun(suite.db, suite.api.organizationId, {
      nodes: [{ id: 'it', type: 'parse_json', config: { text: '{}' } } as NodeSpec],
    })
    equal((await untilRun(suite.db, quick)).status, 'completed')
    const { body } = await suite.api.request('GET', `/v1/runs/${slow}`)
    deepEqual([body.status, body.waiting_for], ['running', 'mail_turn'])
    await suite.api.request('POST', `/v1/runs/${slow}/cancel`)
    equal((await untilRun(suite.db, slow)).status, 'cancelled')
  })

  it('fail the test of a node, which nobody waits for', async () => {
    await limits({ mail_recipients_per_minute: 0 })
    const { body } = await suite.api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'send_email', config: { ...config, to: 'test@example.com' }, confirm: true },
    })
    deepEqual([body.status, body.error.code], ['failed', 'mail_rate_limited'])
  })

  it('fail a mail beyond those of a day, and say when the next day begins', async () => {
    await limits({ mail_recipients_per_day: 3 })
    const run = await untilRun(
      suite.db,
      await queueRun(suite.db, suite.api.organizationId, loop(addresses(5, 'day.example.com'))),
    )
    const nodes = await nodesOf(run.id)
    const failed = nodes.filter(({ status }) => status === 'failed')
    equal(failed.length, 2)
    equal(failed[0].error.code, 'mail_quota_exceeded')
    match(failed[0].error.message, /the plan allows mails to 3 recipients per day\. The next day begins at /)
  })

  it('are a fifth in the first days of an organization that signed up', async () => {
    await limits({ mail_recipients_per_day: 10 })
    await organization({ signed_up: true })
    const run = await untilRun(
      suite.db,
      await queueRun(suite.db, suite.api.organizationId, loop(addresses(4, 'new.example.com'))),
    )
    await organization({ signed_up: false })
    equal((await nodesOf(run.id)).filter(({ status }) => status === 'failed').length, 2)
  })

  it('let recipients unsubscribe by one click, and tell the workflow', async () => {
    await limits({})
    const send = async (to: string[]) => {
      const node = { id: 'mail', type: 'send_email', config: { ...config, to } } as NodeSpec
      const run = await untilRun(
        suite.db,
        await queueRun(suite.db, suite.api.organizationId, { nodes: [node] }),
      )
      return (await nodesOf(run.id))[0]
    }
    await send(['Ada@example.com'])
    const mail = suite.smtp.received.at(-1)!
    equal(mail.header('list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
    const link = /^<(.*)>$/.exec(mail.header('list-unsubscribe')!)![1]!
    ok(!link.includes('ada') && !link.includes('Ada'))
    const url = link.replace(/^.*(?=\/mails\/)/, suite.api.url)
    equal((await fetch(url)).status, 200)
    equal((await send(['ada@example.com'])).status, 'completed')
    const form = { method: 'POST', body: new URLSearchParams('List-Unsubscribe=One-Click') }
    equal((await fetch(url, form)).status, 200)
    equal((await fetch(`${url}x`, form)).status, 404)
    const refused = await send(['ada@example.com'])
    deepEqual([refused.status, refused.error.code], ['failed', 'mail_suppressed'])
    const some = await send(['ada@example.com', 'bob@example.com'])
    deepEqual(some.output.accepted, ['bob@example.com'])
    deepEqual(some.output.rejected, [
      { address: 'ada@example.com', reply: 'not sent: the address has unsubscribed' },
    ])
  })

  it('know the bounces and complaints that the mail server reports', async () => {
    const report = (events: object[], headers = {}) =>
      fetch(`${suite.api.url}/mails/events`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ events }),
      })
    equal((await report([], { 'X-Forwarded-For': '203.0.113.9' })).status, 401)
    equal((await report([{ type: 'opened', address: 'x@example.com' }])).status, 422)
    equal((await report([{ type: 'bounced', address: 'Gone@example.com' }])).status, 200)
    const run = await untilRun(
      suite.db,
      await queueRun(suite.db, suite.api.organizationId, loop(['gone@example.com'])),
    )
    equal((await nodesOf(run.id))[0].error.code, 'mail_suppressed')
  })

  it('let no name of a sender stand for another one', async () => {
    const run = await queueRun(
      suite.db,
      suite.api.organizationId,
      loop(['name@example.com'], { from_name: 'PayPal <service@paypal.com>\u202e' }),
    )
    await untilRun(suite.db, run)
    equal(
      suite.smtp.received.at(-1)!.header('from'),
      '"PayPal service paypal com via example.com" <crm@example.com>',
    )
  })
})
