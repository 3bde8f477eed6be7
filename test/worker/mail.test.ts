import { deepEqual, equal, match } from 'node:assert/strict'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { withMails } from '../support/with-mails.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const config = { to: '{{ inputs.to }}', subject: 'Hello {{ inputs.name }}', text: 'Hello.' }

describe('a mail of a workflow', () => {
  const suite = withMails()
  let { db, api, smtp } = suite
  before(() => {
    ;({ db, api, smtp } = suite)
  })

  const mail = (more: Partial<NodeSpec> = {}): NodeSpec => ({
    id: 'mail',
    type: 'send_email',
    config,
    ...more,
  })
  const run = async (nodes: NodeSpec[], inputs: Record<string, unknown>, more = {}) => {
    const id = await queueRun(db, api.organizationId, { nodes, ...more }, inputs)
    const ended = await untilRun(db, id)
    const row = await db.system('run_nodes').where({ run_id: id, node_id: nodes[0]!.id }).first()
    return { ...ended, row }
  }
  const test = async (body: object) => {
    const answer = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'send_email', config, inputs: { to: 'ada@example.com', name: 'Ada' }, ...body },
    })
    equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }

  it('is sent again with the same Message-ID where its sender did not learn that it was taken', async () => {
    smtp.behave('hang up')
    const retry = { max_attempts: 2, initial_interval: '10ms' }
    const { status, row } = await run([mail({ retry })], { to: 'ada@example.com', name: 'Ada' })
    equal(status, 'completed', JSON.stringify(row))
    equal(row.attempt, 2)
    const [first, second] = smtp.received.map((one) => one.header('message-id'))
    equal(first, second)
    deepEqual(row.output, { message_id: second, accepted: ['ada@example.com'], rejected: [] })
    equal(smtp.received[1]!.header('subject'), 'Hello Ada')
  })

  it('goes to each of a loop, each with a Message-ID of its own', async () => {
    const loop = { items: ['a@example.com', 'b@example.com'], concurrency: 2 }
    const { status } = await run(
      [{ id: 'each', type: 'for_each', config: loop }, mail({ config: { ...config, to: '{{ item }}' } })],
      { name: 'all' },
      { edges: [{ from: 'each', handle: 'item', to: 'mail' }] },
    )
    equal(status, 'completed')
    deepEqual(smtp.received.flatMap(({ to }) => to).sort(), loop.items)
    equal(new Set(smtp.received.map((one) => one.header('message-id'))).size, 2)
  })

  it('fails with the name of the setting if what a placeholder gives is no address', async () => {
    const { status, error } = await run([mail()], { to: 'ada@example.com\nBcc: x@example.com', name: 'Ada' })
    equal(status, 'failed')
    equal(error?.code, 'invalid_config')
    match(error!.message, /to .*must be an email address/)
    equal(smtp.received.length, 0)
  })

  it('is previewed with its recipients and what the service lacks, and sent by a confirmed test', async () => {
    const { preview } = await test({})
    deepEqual(preview.calls, ['sending a mail to ada@example.com'])
    deepEqual(preview.warnings, [
      'Has effects outside the service.',
      'The service has no SMTP_URL, so these nodes fail: Send email.',
      'The service has no MAIL_FROM, so these nodes fail: Send email.',
    ])
    equal(smtp.received.length, 0)
    const tested = await test({ confirm: true })
    deepEqual([tested.status, tested.output.accepted], ['completed', ['ada@example.com']])
    equal(smtp.received.length, 1)
  })

  it('fails with a clear error where the service has no mail server', async () => {
    await suite.worker.stop()
    await suite.restart('bare')
    const { status, error, row } = await run([mail()], { to: 'ada@example.com', name: 'Ada' })
    equal(status, 'failed')
    equal(row.attempt, 1)
    equal(error?.code, 'mail_not_configured')
    match(error!.message, /has not set SMTP_URL and MAIL_FROM/)
  })
})
