import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { renewLeases } from '../../db/queue/mails.ts'
import { approvalMails } from '../../db/runs/approval-mails.ts'
import { createMember, createOrganization } from '../support/database.ts'
import { bodyOf, type ReceivedMail } from '../support/smtp.ts'
import { until } from '../support/until.ts'
import { withMails } from '../support/with-mails.ts'
import { queueRun, saveWorkflow, untilRun } from '../support/worker.ts'

const pathIn = (mail: ReceivedMail) =>
  /http:\/\/localhost:8080(\/approvals\/[\w-]{107})\r?\n/.exec(bodyOf(mail))?.[1]

describe('the mails of an approval', () => {
  const suite = withMails()
  let { db, api, smtp } = suite
  before(() => {
    ;({ db, api, smtp } = suite)
  })

  const definition = (config: object) => ({
    name: 'Discount',
    nodes: [{ id: 'ask', type: 'approval', config: { title: 'May I?', ...config } }],
    outputs: { output: '{{ nodes.ask.output }}' },
  })
  const ask = (config: object) => queueRun(db, api.organizationId, definition(config))
  const received = (to: string, count = 1) =>
    until(() => {
      const mails = smtp.received.filter((mail) => mail.to.includes(to))
      return mails.length >= count && mails
    })
  const rows = (id: string) => db.system('approval_mails').where({ run_id: id }).orderBy('id')
  const until1 = (id: string, test: (row: Record<string, unknown>) => boolean) =>
    until(async () => (await rows(id)).find(test))
  const dueNow = (id: string) =>
    db.system('approval_mails').where({ run_id: id }).update({ due_at: new Date() })
  const answer = (path: string | undefined) => {
    ok(path)
    return api.request('POST', path, {
      key: null,
      body: { decision: 'approved', comment: 'Fine.' },
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    })
  }
  const decide = async (id: string) => {
    const { waits } = (await api.request('GET', `/v1/runs/${id}`)).body
    const approval_id = waits[0].approval.id
    const body = { approval_id, decision: 'rejected' }
    equal((await api.request('POST', `/v1/runs/${id}/signal`, { body })).status, 200)
  }

  it('ask each address in a mail of its own, with a link at which it can decide', async () => {
    const id = await ask({
      message: 'Für Acme: 30 %.\nBcc: x@example.com',
      assignees: [
        'ann@example.com',
        '019a0000-0000-7000-8000-000000000001',
        'Ann@example.com',
        'bob@example.com',
      ],
      timeout: '1h',
    })
    const [[ann], [bob]] = await Promise.all([received('Ann@example.com'), received('bob@example.com')])
    deepEqual([ann!.to, bob!.to], [['Ann@example.com'], ['bob@example.com']])
    deepEqual([ann!.header('subject'), ann!.header('from')], ['May I?', 'crm@example.com'])
    equal(ann!.header('bcc'), undefined)
    match(bodyOf(ann!), /Workflow: Discount\r?\nOpen until: \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
    notEqual(ann!.header('message-id'), bob!.header('message-id'))
    await until(async () => (await rows(id)).every((row) => row.sent_at))
    const { waits } = (await api.request('GET', `/v1/runs/${id}`)).body
    deepEqual(
      waits[0].approval.mails.map(({ sent_at, ...mail }: { sent_at: string }) => ({
        ...mail,
        sent: sent_at !== null,
      })),
      ['Ann@example.com', 'bob@example.com'].map((address) => ({
        event: 'approval.requested',
        address,
        problem: null,
        sent: true,
      })),
    )
    deepEqual([(await answer(pathIn(ann!))).status, (await answer(pathIn(bob!))).status], [200, 409])
    const { status, outputs } = await untilRun(db, id)
    const { decision, comment, answered_by } = outputs!.output as Record<string, unknown>
    deepEqual([status, decision, comment], ['completed', 'approved', 'Fine.'])
    deepEqual(answered_by, { type: 'link', id: null })
    equal(smtp.received.length, 2)
  })

  it('ask users by their ids, and the owner of the record', async () => {
    const owner = await createMember(db, api.organizationId, 'Olga')
    const address = `${owner}@example.com`
    const made = await api.request('POST', '/v1/objects/deals', { body: { name: 'Big', owner_id: owner } })
    const spec = 'trigger: {type: event, events: [deal.updated]}'
    const check = (assignees: string, trigger = spec) =>
      api.request('POST', '/v1/workflows/validate', {
        body: {
          spec: `name: Ask\n${trigger}\nnodes: {ask: {type: approval, config: {title: T, assignees: ${assignees}}}}`,
        },
      })
    deepEqual((await check('owner')).body.errors, [])
    const [unknown] = (await check('owner', 'trigger: {type: schedule, every: 1h}')).body.errors
    match(unknown.message, /trigger has no record/)
    const start = (record: object) =>
      queueRun(
        db,
        api.organizationId,
        definition({ assignees: 'owner' }),
        {},
        {
          type: 'event',
          event: 'deal.updated',
          record,
        },
      )
    const id = await start(made.body)
    const [mail] = await received(address)
    equal((await answer(pathIn(mail!))).status, 200)
    equal((await untilRun(db, id)).status, 'completed')
    const { error } = await untilRun(db, await start({ ...made.body, owner_id: null }))
    equal(error?.code, 'no_such_user')
  })

  it('remind at the interval and escalate to other addresses, until somebody has decided', async () => {
    const id = await ask({
      assignees: ['ann@example.com'],
      remind_every: '1s',
      escalate_after: '1s',
      escalate_to: ['head@example.com'],
    })
    const [escalated] = await received('head@example.com')
    equal(escalated!.header('subject'), 'Escalated: May I?')
    const mails = await received('ann@example.com', 3)
    deepEqual(
      mails.map((mail) => mail.header('subject')),
      ['May I?', 'Reminder: May I?', 'Reminder: May I?'],
    )
    equal((await answer(pathIn(escalated!))).status, 200)
    await untilRun(db, id)
    const { length } = await rows(id)
    // The first reminder of a later one.
    const other = await ask({ assignees: ['other@example.com'], remind_every: '1s' })
    await received('other@example.com', 2)
    await decide(other)
    equal((await rows(id)).length, length)
    equal(smtp.received.filter((mail) => mail.to.includes('head@example.com')).length, 1)
  })

  it('are sent again with the same Message-ID after a crash, whether they were sent before it or not', async () => {
    smtp.behave('hang up')
    const id = await ask({ assignees: ['ann@example.com'] })
    await until1(id, (row) => row.problem !== null)
    await dueNow(id)
    const sent = await received('ann@example.com', 2)
    equal(new Set(sent.map((mail) => mail.header('message-id'))).size, 1)
    const row = await until1(id, ({ sent_at }) => sent_at !== null)
    deepEqual([row.attempts, row.problem], [2, null])
    await decide(id)

    // A relay that has claimed the mail, and is killed before it sends it.
    smtp.behave({ at: 'rcpt', code: 450, text: 'later' })
    const other = await ask({ assignees: ['bob@example.com'] })
    await until1(other, ({ problem }) => problem !== null)
    await suite.worker.stop()
    await dueNow(other)
    const claimed = await approvalMails.claim(db.system, 10)
    equal(claimed.length, 1)
    await dueNow(other)
    await renewLeases(db.system, 'approval_mails', claimed)
    await suite.restart()
    deepEqual(await approvalMails.claim(db.system, 10), [], 'its lease holds')
    const soon = db.system.raw("due_at < now() + interval '15 seconds'")
    equal((await db.system('approval_mails').where({ run_id: other }).where(soon)).length, 1, 'not for long')
    equal(smtp.received.length, 0)
    await dueNow(other)
    await received('bob@example.com')
    await until1(other, ({ sent_at }) => sent_at !== null)
    await decide(other)
    await untilRun(db, other)
  })

  it('are not sent once the approval was answered', async () => {
    smtp.behave({ at: 'rcpt', code: 450, text: 'later' })
    const id = await ask({ assignees: ['ann@example.com'] })
    const { problem } = await until1(id, (row) => row.problem !== null)
    match(String(problem), /refused the mail: 450 later/)
    await decide(id)
    await dueNow(id)
    const row = await until1(id, ({ ended_at }) => ended_at !== null)
    deepEqual([row.sent_at, smtp.received.length], [null, 0])
    equal((await untilRun(db, id)).status, 'completed')
  })

  it('that are refused for good show why with the run, and the others are sent', async () => {
    const id = await ask({ assignees: ['unknown@example.com', 'ann@example.com'] })
    await received('ann@example.com')
    await until1(id, ({ ended_at, address }) => address === 'unknown@example.com' && ended_at !== null)
    const { waits } = (await api.request('GET', `/v1/runs/${id}`)).body
    match(waits[0].approval.mails[0].problem, /550 no such user/)
    equal((await rows(id))[0].attempts, 1)
    await decide(id)
  })

  it('go out in turns: many of one organization do not hold up those of another', async () => {
    const other = await createOrganization(db)
    const config = { assignees: ['ann@example.com'] }
    const ids = [await ask(config), await queueRun(db, other, definition(config))]
    for (const id of ids) await until1(id, ({ sent_at }) => sent_at !== null)
    await suite.worker.stop()
    for (const [id, count, age] of [
      [ids[0]!, 50, '1 hour'],
      [ids[1]!, 1, '1 second'],
    ] as const)
      await db.system.raw(
        `insert into approval_mails (organization_id, id, run_id, approval_id, event, address, due_at)
         select organization_id, gen_random_uuid(), run_id, approval_id, event, address, now() - cast(? as interval)
         from approval_mails m, generate_series(1, ?) where run_id = ?`,
        [age, count, id],
      )
    const claimed = await approvalMails.claim(db.system, 2)
    deepEqual(
      claimed.map(({ organization_id }) => organization_id).sort(),
      [api.organizationId, other].sort(),
    )
    await db.system('approval_mails').update({ ended_at: new Date() })
    await suite.restart()
    await decide(ids[0]!)
  })

  it('leave the link to the API where the service has no mail server, and previews warn', async () => {
    const { id } = await saveWorkflow(db, api.organizationId, definition({ assignees: ['{{ org.name }}'] }))
    const { preview } = (await api.request('POST', `/v1/workflows/${id}/run`, { body: {} })).body
    deepEqual(
      preview.warnings,
      ['SMTP_URL', 'MAIL_FROM', 'PUBLIC_URL'].map(
        (name) => `The service has no ${name}, so these nodes send no mails: ask.`,
      ),
    )
    const silent = await saveWorkflow(db, api.organizationId, definition({}))
    deepEqual(
      (await api.request('POST', `/v1/workflows/${silent.id}/run`, { body: {} })).body.preview.warnings,
      [],
    )
    await suite.worker.stop()
    await suite.restart('bare')
    const run = await ask({ assignees: ['ann@example.com'] })
    await until1(run, ({ ended_at }) => ended_at !== null)
    const { approval } = (await api.request('GET', `/v1/runs/${run}`)).body.waits[0]
    match(approval.mails[0].problem, /has not set SMTP_URL/)
    equal((await answer(approval.link)).status, 200)
    equal((await untilRun(db, run)).status, 'completed')
  })
})
