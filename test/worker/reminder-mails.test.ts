import { deepEqual, equal, match } from 'node:assert/strict'
import { accountMails } from '../../db/access/account-mails.ts'
import { createMember, createOrganization } from '../support/database.ts'
import { type App, signInAs } from '../support/session.ts'
import { bodyOf } from '../support/smtp.ts'
import { until } from '../support/until.ts'
import { withMails } from '../support/with-mails.ts'

describe('the mails of reminders', () => {
  const suite = withMails((mail) => ({ ...mail, PUBLIC_URL: 'http://localhost:8080' }))
  let { db, api, smtp } = suite
  let ada = ''
  let bob = ''
  let appOfAda: App
  before(async () => {
    ;({ db, api, smtp } = suite)
    ada = await createMember(db, api.organizationId, 'Ada')
    bob = await createMember(db, api.organizationId, 'Bob')
    appOfAda = await signInAs(db, api, ada)
    equal((await appOfAda('PATCH', '/preferences', { task_reminder_mails: true })).status, 200)
  })

  /** Sets the reminder to this moment: one that passes while it is being set is none. */
  const remind = (id: string) => db.system('tasks').where({ id }).update({ reminder_at: new Date() })
  const create = async (values: object) => {
    const { status, body } = await api.request('POST', '/v1/objects/tasks', {
      body: {
        title: 'Call',
        reminder_at: new Date(Date.now() + 3_600_000).toISOString(),
        assignee_id: ada,
        ...values,
      },
    })
    equal(status, 201, JSON.stringify(body))
    await remind(body.id)
    return body as { id: string; [field: string]: unknown }
  }
  const update = async (id: string, body: object) =>
    equal((await api.request('PATCH', `/v1/objects/tasks/${id}`, { body })).status, 200)
  const reminded = (id: string) =>
    until(() => db.system('events').where({ subject_id: id, name: 'task.reminder' }).first())
  const rows = (id: string) =>
    db
      .system('account_mails')
      .whereRaw("details -> 'reminder' ->> 'task_id' = ?", [id])
      .orderBy('id')
      .select<Record<string, unknown>[]>()
  const until1 = (id: string, test: (row: Record<string, unknown>) => boolean) =>
    until(async () => (await rows(id)).find(test))
  const dueNow = () => db.system('account_mails').whereNull('ended_at').update({ due_at: new Date() })
  const mails = (text: string) => smtp.received.filter((mail) => bodyOf(mail).includes(text))
  /** A task whose mail was deferred by the mail server. */
  const deferred = async (values: object = {}) => {
    smtp.behave({ at: 'rcpt', code: 450, text: 'later' })
    const task = await create(values)
    await until1(task.id, ({ problem }) => problem !== null)
    return task
  }
  /** The mail of a task ends unsent. */
  const unsent = async (id: string) => {
    await dueNow()
    const { sent_at, problem } = await until1(id, ({ ended_at }) => ended_at !== null)
    equal(sent_at, null)
    equal(mails(id).length, 0)
    return problem
  }

  it('go to the assignee who wants them, with the task and where it is, once', async () => {
    await db
      .system('organizations')
      .where({ id: api.organizationId })
      .update({
        settings: { timezone: 'Europe/Berlin' },
      })
    const task = await create({ title: 'Call evil.example.com', due_at: '2026-01-02T08:00:00Z' })
    const others = [await create({ assignee_id: bob }), await create({ assignee_id: null })]
    const { address, attempts, details } = await until1(task.id, ({ sent_at }) => sent_at !== null)
    deepEqual([address, attempts], [`${ada}@example.com`, 1])
    equal(JSON.stringify(details).includes('evil'), false)
    const [mail, ...more] = mails(task.id)
    deepEqual([mail!.to, more], [[`${ada}@example.com`], []])
    equal(mail!.header('subject'), 'Reminder: Call evil example com')
    const text = bodyOf(mail!).replaceAll('=\r\n', '').replaceAll('\r\n', '\n')
    match(text, /^Call evil example com\n\nDue: 2026-01-02 09:00 \(Europe\/Berlin\)\n\n/m)
    match(text, new RegExp(`http://localhost:8080/records/tasks/${task.id}\n`))
    for (const { id } of others) {
      await reminded(id)
      deepEqual(await rows(id), [])
    }
    await remind(task.id)
    await until(() => mails(task.id).length === 2)
    const ids = mails(task.id).map((one) => one.header('message-id'))
    equal(new Set(ids).size, 2, 'another time is another reminder')
  })

  it('are sent again with the same Message-ID after a crash, under a lease', async () => {
    smtp.behave('hang up')
    const { id } = await create({})
    await until1(id, ({ problem }) => problem !== null)
    await dueNow()
    await until1(id, ({ sent_at }) => sent_at !== null)
    equal(mails(id).length, 2)
    equal(new Set(mails(id).map((mail) => mail.header('message-id'))).size, 1)

    // A relay that has claimed the mail, and is killed before it sends it.
    const other = await deferred()
    await suite.worker.stop()
    await dueNow()
    equal((await accountMails.claim(db.system, 10)).length, 1)
    await suite.restart()
    deepEqual(await accountMails.claim(db.system, 10), [], 'its lease holds')
    equal(mails(other.id).length, 0)
    await dueNow()
    await until1(other.id, ({ sent_at }) => sent_at !== null)
    equal(mails(other.id).length, 1)
  })

  for (const [what, change] of [
    ['was done', { status: 'done' }],
    ['was assigned to somebody else', { assignee_id: '' }],
    ['has its reminder later', { reminder_at: new Date(Date.now() + 3_600_000).toISOString() }],
    ['has no reminder any more', { reminder_at: null }],
  ] as const)
    it(`are not sent for a task that ${what}`, async () => {
      const { id } = await deferred()
      await update(id, 'assignee_id' in change ? { assignee_id: bob } : change)
      equal(await unsent(id), null)
    })

  it('go to the address that the assignee has when they are sent', async () => {
    const { id } = await deferred()
    const users = db.system('users').where({ id: ada })
    await users.clone().update({ email: 'ada@new.example.com' })
    try {
      await dueNow()
      await until1(id, ({ sent_at }) => sent_at !== null)
      deepEqual(
        mails(id).map(({ to }) => to),
        [['ada@new.example.com']],
      )
    } finally {
      await users.clone().update({ email: `${ada}@example.com` })
    }
  })

  it('are not sent more than 12 hours late, as after a quota', async () => {
    const { id } = await deferred()
    const late = new Date(Date.now() - 12.1 * 3_600_000).toISOString()
    await db.system('tasks').where({ id }).update({ reminder_at: late })
    await db
      .system('account_mails')
      .whereRaw("details -> 'reminder' ->> 'task_id' = ?", [id])
      .update({
        details: db.system.raw("jsonb_set(details, '{reminder,reminder_at}', to_jsonb(?::text))", [late]),
      })
    equal(await unsent(id), null)
  })

  it('are not sent for a deleted task, and are for a restored one', async () => {
    const [gone, back] = [await deferred(), await deferred()]
    for (const { id } of [gone, back]) await api.request('DELETE', `/v1/objects/tasks/${id}`)
    equal((await api.request('POST', `/v1/objects/tasks/${back.id}/restore`)).status, 200)
    equal(await unsent(gone.id), null)
    await until1(back.id, ({ sent_at }) => sent_at !== null)
  })

  it('are not sent to suppressed addresses, nor to who does not want them any more', async () => {
    const address = `${ada}@example.com`
    const suppressed = await deferred()
    await db.system('mail_suppressions').insert({
      id: ada,
      organization_id: api.organizationId,
      address,
      reason: 'unsubscribed',
    })
    match(String(await unsent(suppressed.id)), /gets no mails/)
    await db.system('mail_suppressions').delete()
    const unwanted = await deferred()
    const { body } = await appOfAda('PATCH', '/preferences', { task_reminder_mails: false })
    deepEqual(body, { object: 'preferences', task_reminder_mails: false })
    equal(await unsent(unwanted.id), null)
    const later = await create({})
    await reminded(later.id)
    deepEqual(await rows(later.id), [])
    await appOfAda('PATCH', '/preferences', { task_reminder_mails: true })
  })

  it('are of the member and of one organization, and end with the membership', async () => {
    const other = await createOrganization(db)
    await db.system('memberships').insert({ organization_id: other, user_id: ada, role: 'member' })
    const wanted = await db
      .system('memberships')
      .where({ user_id: ada })
      .orderBy('created_at')
      .pluck('task_reminder_mails')
    deepEqual(wanted, [true, false])
    deepEqual((await (await signInAs(db, api, bob))('GET', '/preferences')).body, {
      object: 'preferences',
      task_reminder_mails: false,
    })
    equal((await appOfAda('PATCH', '/preferences', { task_reminder_mails: 'yes' })).status, 422)
    const { id } = await deferred()
    await db.system('memberships').where({ organization_id: api.organizationId, user_id: ada }).delete()
    equal(await unsent(id), null)
  })
})
