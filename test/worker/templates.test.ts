import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { catalogue } from '../../api/v1/catalogue.ts'
import { insertEvents } from '../../db/events/outbox.ts'
import type { RecordInput } from '../../db/model/records/schemas.ts'
import { validateSpec } from '../../workflows/authoring/validate.ts'
import { readTemplates } from '../../workflows/templates/index.ts'
import { createMember } from '../support/database.ts'
import type { Call } from '../support/office.ts'
import { createOffice, type Office } from '../support/template-office.ts'
import { chatReply, type Reply, withOffices } from '../support/with-offices.ts'

/**
 * The API imports each template into a separate organization that meets its requirements, and the template runs as in
 * use.
 */

/** The response of the local server for a language model. */
const CLASSIFIED = { topic: 'technical', urgency: 'urgent', summary: 'The shop is down' }

const DAY = 86_400_000
const dayFromNow = (days: number) => new Date(Date.now() + days * DAY).toISOString().slice(0, 10)
describe('the templates', () => {
  const templates = readTemplates()
  const servers = withOffices(
    replyTo,
    // The only address in the text of a template.
    (url, local) => url.replace('https://api.openai.com', local),
    (local) => ({ ratesUrl: `${local}/rates` }),
  )

  function replyTo({ path, body }: Call): Reply {
    if (path.includes('/enrichment_url')) return { body: { industry: 'Machines', employees: 12 } }
    if (path.includes('/site_url')) return { status: 503 }
    if (path === '/rates') return { body: { base: 'EUR', date: dayFromNow(0), rates: { USD: 1.2 } } }
    if (!path.endsWith('/chat/completions')) return { body: {} }
    const asked = JSON.stringify(body).includes('json_schema')
    return chatReply(asked ? JSON.stringify(CLASSIFIED) : 'Hello Ada, we will look into it.')
  }

  const office = (id: string) => createOffice(servers(), templates.find((one) => one.id === id)!)

  it('are valid, without a warning', () => {
    for (const { id, spec } of templates) {
      const { errors, warnings } = validateSpec(spec, catalogue).result
      deepEqual([...errors, ...warnings], [], id)
    }
    ok(templates.length >= 30)
  })

  it('are those of the folders, with unique ids and names, and say what they do', () => {
    const folder = new URL('../../workflows/templates/', import.meta.url)
    const files = readdirSync(folder, { recursive: true })
      .map(String)
      .filter((file) => file.endsWith('.yaml'))
    deepEqual(templates.map(({ category, id }) => `${category}/${id}.yaml`).sort(), files.sort())
    for (const member of ['id', 'name'] as const)
      equal(new Set(templates.map((template) => template[member])).size, templates.length)
    for (const { id, description } of templates) ok(description.length > 50, id)
  })

  it('name each custom field that they use', () => {
    for (const { id, spec, requires } of templates) {
      const used = [...spec.matchAll(/custom_fields(?:\.|: \{)(\w+)/g)].map(([, name]) => name)
      deepEqual([...new Set(used)].sort(), requires.custom_fields.map(({ name }) => name).sort(), id)
    }
  })

  const ADA = { first_name: 'Ada', last_name: 'Lovelace' }
  const deal = (o: Office, more: RecordInput = {}) =>
    o.create('deals', { name: 'Engine', amount: '1250.00', currency: 'USD', ...more })
  const winning = async (o: Office, more: RecordInput = {}) => {
    const { id } = await deal(o, more)
    await o.records.update('deals', String(id), { stage: 'won' })
    return String(id)
  }
  const text = (o: Office, name: string) => o.calls(name).map(({ body }) => body.text)

  const cases: Record<string, (o: Office) => Promise<void>> = {
    'new-lead-alert': async (o) => {
      await o.create('contacts', {
        ...ADA,
        email: o.address('ada'),
        lifecycle_stage: 'lead',
        lead_source: 'ads',
      })
      await o.triggered()
      deepEqual(text(o, 'slack_sales'), [`New lead: *Ada Lovelace* ${o.address('ada')} (source: ads)`])
    },
    'form-lead-follow-up': async (o) => {
      await o.webhook(await o.create('contacts', { ...ADA, email: o.address('ada') }))
      deepEqual(await o.titles(), ['Call Ada Lovelace'])
      equal(o.mails().length, 1)
    },
    'lead-scoring': async (o) => {
      const { id } = await o.create('contacts', {
        email: o.address('ada'),
        job_title: 'Director',
        phone: '+41446681800',
      })
      deepEqual(await o.triggered(), { score: 80 })
      const after = await o.records.get('contacts', String(id))
      deepEqual([after.lifecycle_stage, after.custom_fields], ['mql', { lead_score: 80 }])
    },
    'deal-won-announcement': async (o) => {
      await winning(o)
      await o.triggered()
      deepEqual(text(o, 'slack_sales'), [':tada: Won: *Engine* (1250.00 USD)'])
    },
    'deal-won-onboarding': async (o) => {
      const contact = await o.create('contacts', { email: o.address('ada') })
      await winning(o, { contact_id: contact.id })
      await o.triggered()
      equal((await o.records.get('contacts', String(contact.id))).lifecycle_stage, 'customer')
      deepEqual(await o.titles(), [
        'Ask how it is going: Engine',
        'Hold the kick-off meeting: Engine',
        'Send the welcome package: Engine',
      ])
    },
    'stale-deals': async (o) => {
      await deal(o, { stage: 'proposal' })
      await deal(o, { stage: 'won' })
      // Deals without a change until tomorrow.
      deepEqual(await o.run({ days: -1 }), { stale: 1 })
      deepEqual(await o.run({ days: -1 }), { stale: 1 })
      deepEqual(await o.titles(), ['Revive the deal Engine'])
      deepEqual(await o.scheduled(), { stale: 0 })
    },
    'lost-deal-win-back': async (o) => {
      const { id } = await deal(o)
      await o.records.update('deals', String(id), { stage: 'lost', lost_reason: 'Too expensive' })
      await o.triggered()
      const [task] = await o.rows('tasks')
      deepEqual([task.title, task.body], ['Ask again: Engine', 'Lost because: Too expensive'])
    },
    'discount-approval': async (o) => {
      const { id } = await deal(o)
      const run = await o.start({ deal_id: id, percent: 10, manager: 'ann@example.com' })
      await o.decide(run, 'approved')
      deepEqual(await o.completed(run), { decision: 'approved' })
      equal((await o.records.get('deals', String(id))).amount, '1125.00')
      deepEqual(
        (await o.rows('notes')).map(({ body }) => body),
        ['Discount of 10 %: approved. fine'],
      )
    },
    'proposal-follow-up': async (o) => {
      const { id } = await deal(o)
      await o.records.update('deals', String(id), { stage: 'proposal' })
      await o.triggered()
      deepEqual(await o.titles(), ['Ask about the proposal: Engine'])
    },
    'no-show-recovery': async (o) => {
      const contact = await o.create('contacts', { ...ADA, email: o.address('ada') })
      const meeting = await o.create('activities', {
        type: 'meeting',
        status: 'planned',
        associations: [{ object: 'contacts', id: contact.id }],
      })
      await o.records.update('activities', String(meeting.id), { status: 'no_show' })
      await o.triggered()
      equal(o.mails().length, 1)
      match(o.mails()[0]!.text, /booking_url/)
    },
    'weekly-pipeline-report': async (o) => {
      for (const stage of ['proposal', 'proposal', 'won']) await deal(o, { stage })
      const report = '*Open deals*\n• proposal: 2 deals, 2500.00 USD'
      deepEqual(await o.scheduled(), { report })
      deepEqual(text(o, 'slack_sales'), [report])
    },
    'renewal-reminders': async (o) => {
      for (const days of [60, 61])
        await deal(o, { deal_type: 'renewal', expected_close_date: dayFromNow(days) })
      deepEqual(await o.scheduled(), { renewals: 1 })
      deepEqual(await o.titles(), ['Prepare the renewal of Engine'])
    },
    'enrich-company': async (o) => {
      const { id } = await o.create('companies', { name: 'Engines', domain: 'engines.example' })
      await o.triggered()
      const { industry, employee_count } = await o.records.get('companies', String(id))
      deepEqual([industry, employee_count], ['Machines', 12])
      match(o.calls()[0]!.path, /\?domain=engines\.example$/)
      equal(o.calls()[0]!.headers.authorization, 'Bearer key-enrich-company')
    },
    'request-to-task': async (o) => {
      const { task_id } = await o.run({ email: o.address('ada'), subject: 'Help', message: 'It is broken' })
      deepEqual(
        (await o.rows('tasks')).map(({ id, body }) => [id, body]),
        [[task_id, 'It is broken']],
      )
      match(o.mails()[0]!.text, new RegExp(String(task_id)))
    },
    'ai-triage': async (o) => {
      const outputs = await o.run({ email: o.address('ada'), message: 'Our shop is down!' })
      equal(outputs.topic, 'technical')
      const [task] = await o.rows('tasks')
      deepEqual(
        [task.title, task.priority, task.tags],
        [CLASSIFIED.summary, 'urgent', ['support', 'technical']],
      )
      match(text(o, 'slack_support')[0], /The shop is down/)
    },
    'ai-reply-draft': async (o) => {
      const { id } = await o.create('contacts', ADA)
      const collection = await o.request('POST', '/knowledge/collections', { name: 'Help' })
      await o.request('POST', `/knowledge/collections/${collection.id}/documents`, {
        title: 'Delivery',
        body: 'Engines are delivered in May.',
      })
      await o.run({ contact_id: id, message: 'Where is my engine?' })
      match(
        JSON.stringify(servers().calls.at(-1)?.body),
        /\[1\] Delivery.{1,4}Engines are delivered in May\./,
      )
      deepEqual(
        (await o.rows('notes')).map(({ body }) => body),
        ['Hello Ada, we will look into it.'],
      )
    },
    'overdue-task-escalation': async (o) => {
      await o.create('tasks', { title: 'Late', due_at: '2026-01-31T09:00:00Z' })
      await o.create('tasks', { title: 'In time', due_at: new Date(Date.now() + DAY).toISOString() })
      await o.scheduled()
      deepEqual(
        (await o.rows('tasks')).map(({ priority }) => priority),
        ['urgent', 'medium'],
      )
      deepEqual(text(o, 'slack_support'), ['*Overdue tasks*\n• Late, due 31.01.2026'])
    },
    'satisfaction-survey': async (o) => {
      const contact = await o.create('contacts', { ...ADA, email: o.address('ada') })
      const task = await o.create('tasks', {
        title: 'Broken engine',
        tags: ['support'],
        associations: [{ object: 'contacts', id: contact.id }],
      })
      await o.records.update('tasks', String(task.id), { status: 'done' })
      await o.triggered()
      equal(o.mails().length, 1)
    },
    'nps-answer': async (o) => {
      await o.run({ email: o.address('ada'), score: 3, comment: 'Too slow' })
      deepEqual(await o.titles(), [`Call an unhappy customer: ${o.address('ada')}`])
      await o.run({ email: o.address('bob'), score: 10 })
      deepEqual(
        o.mails().map(({ to }) => to),
        [[o.address('bob')]],
      )
      deepEqual(
        (await o.rows('contacts')).map((row) => row.custom_fields),
        [{ nps_score: 3 }, { nps_score: 10 }],
      )
    },
    'churn-risk-alert': async (o) => {
      await o.create('notes', { body: 'They want to CANCEL in March.' })
      await o.triggered()
      deepEqual(await o.titles(), ['A customer may leave'])
      equal(o.calls('slack_support').length, 1)
    },
    'refund-approval': async (o) => {
      const order = { email: o.address('ada'), order: 'A-1' }
      deepEqual(await o.run({ ...order, amount: 20 }), { granted: true })
      const run = await o.start({ ...order, amount: 200 })
      await o.decide(run, 'rejected')
      deepEqual(await o.completed(run), { granted: false })
      equal((await o.rows('events').where({ name: 'refund.approved' })).length, 1)
      equal(o.mails().length, 2)
    },
    'welcome-series': async (o) => {
      await o.create('contacts', { ...ADA, email: o.address('ada'), lifecycle_stage: 'subscriber' })
      await o.triggered()
      deepEqual(
        o.mails().map((mail) => mail.header('subject')),
        ['Welcome to Test', 'Three things to try first'],
      )
    },
    'newsletter-sync': async (o) => {
      await o.create('contacts', { ...ADA, email: o.address('ada'), tags: ['newsletter'] })
      await o.triggered()
      deepEqual(
        o.calls('newsletter_api_url').map(({ body }) => body),
        [{ email_address: o.address('ada'), status: 'subscribed', first_name: 'Ada' }],
      )
      equal((await o.rows('notes')).length, 0)
    },
    're-engage-contacts': async (o) => {
      const contact = { ...ADA, lifecycle_stage: 'customer', last_contacted_at: '2026-01-31T09:00:00Z' }
      await o.create('contacts', { ...contact, email: o.address('ada') })
      await o.create('contacts', { ...contact, email: o.address('no'), do_not_contact: true })
      deepEqual(await o.scheduled(), { written: 1 })
      deepEqual(
        o.mails().map(({ to }) => to),
        [[o.address('ada')]],
      )
      deepEqual(await o.run(), { written: 0 })
    },
    'mql-handoff': async (o) => {
      const { id } = await o.create('contacts', ADA)
      await o.records.update('contacts', String(id), { lifecycle_stage: 'mql' })
      await o.triggered()
      deepEqual(await o.titles(), ['Qualify Ada Lovelace'])
      equal(o.calls('slack_sales').length, 1)
    },
    'webinar-registration': async (o) => {
      const inputs = { webinar: 'Engines for all', day: dayFromNow(0), link: 'https://example.com/w' }
      await o.run({ ...inputs, email: o.address('ada') })
      equal(o.mails().length, 2)
      deepEqual(
        (await o.rows('contacts')).map(({ tags }) => tags),
        [['engines-for-all']],
      )
    },
    'referral-request': async (o) => {
      const contact = await o.create('contacts', { ...ADA, email: o.address('ada') })
      await winning(o, { contact_id: contact.id })
      await o.triggered()
      equal(o.mails().length, 1)
    },
    unsubscribe: async (o) => {
      const { id } = await o.create('contacts', { email: o.address('ada') })
      deepEqual(await o.run({ email: o.address('ada') }), { found: true })
      equal((await o.records.get('contacts', String(id))).do_not_contact, true)
      deepEqual(await o.run({ email: o.address('bob') }), { found: false })
    },
    'ad-audience': async (o) => {
      await o.create('contacts', { email: o.address('ada'), lifecycle_stage: 'customer' })
      await o.scheduled()
      const [{ body }] = o.calls('audience_api_url') as [Call]
      equal(body.emails.length, 1)
      match(body.emails[0], /^[0-9a-f]{64}$/)
    },
    'invoice-paid': async (o) => {
      const { id } = await deal(o, { external_id: 'D-7' })
      await o.records.tenant((tx) =>
        insertEvents(tx, [{ name: 'invoice.paid', data: { id: 'I-1', deal: 'D-7' } }]),
      )
      await o.triggered()
      equal((await o.records.get('deals', String(id))).stage, 'won')
      deepEqual(
        (await o.rows('notes')).map(({ body }) => body),
        ['Invoice I-1 was paid.'],
      )
    },
    'payment-reminder': async (o) => {
      const unpaid = await o.start({ invoice: 'I-1', email: o.address('ada') })
      const paid = await o.start({ invoice: 'I-2', email: o.address('bob') })
      await o.waits(paid)
      await o.records.tenant((tx) => insertEvents(tx, [{ name: 'invoice.paid', data: { id: 'I-2' } }]))
      await Promise.all([unpaid, paid].map(o.completed))
      deepEqual(
        o.mails().map(({ to }) => to),
        [[o.address('ada')]],
      )
      deepEqual(await o.titles(), ['Invoice I-1 is not paid'])
    },
    'companies-from-csv': async (o) => {
      const csv = 'name,domain\nEngines,engines.example\nLooms,looms.example\n,no domain\n'
      deepEqual(await o.run({ csv }), { saved: 2, failed: 1 })
      deepEqual((await o.rows('companies')).map(({ domain }) => domain).sort(), [
        'engines.example',
        'looms.example',
      ])
    },
    'deal-to-erp': async (o) => {
      await winning(o)
      await o.triggered()
      const [{ body, headers }] = o.calls('erp_webhook_url') as [Call]
      deepEqual([body.event, body.data.amount], ['order.ready', '1250.00'])
      match(String(headers['webhook-signature']), /^v1,/)
    },
    'deal-in-own-currency': async (o) => {
      const { id } = await deal(o, { amount: '100.00', currency: 'EUR' })
      await o.triggered()
      const { custom_fields } = await o.records.get('deals', String(id))
      deepEqual(custom_fields, { amount_in_own_currency: 120 })
    },
    'failed-run-alert': async (o) => {
      const spec = 'name: Broken\nnodes: {end_it: {type: stop, config: {status: failed, message: No stock}}}'
      const { workflow_id } = await o.request('POST', '/workflows', { spec })
      await o.request('POST', `/workflows/${workflow_id}/run`, { confirm: true })
      await o.triggered()
      deepEqual(text(o, 'slack_operations'), ['The workflow *Broken* failed: No stock'])
    },
    'clean-phone-numbers': async (o) => {
      // Numbers with an extension are kept as written.
      await o.create('contacts', { ...ADA, phone: '12345' })
      await o.triggered()
      deepEqual(await o.titles(), ['Correct the phone number 12345'])
    },
    'site-check': async (o) => {
      await o.scheduled()
      await o.run()
      equal(o.calls('slack_operations').length, 1)
      match(text(o, 'slack_operations')[0], /is down/)
    },
    'order-once': async (o) => {
      const order = { order: 'A-1', email: o.address('ada'), amount: '80.00' }
      deepEqual(await o.run(order), { new: true })
      deepEqual(await o.run(order), { new: false })
      deepEqual(
        (await o.rows('deals')).map(({ stage, amount }) => [stage, amount]),
        [['won', '80.00']],
      )
    },
    'daily-task-digest': async (o) => {
      await o.env({ team_email: o.address('team') })
      await o.create('tasks', { title: 'Late', due_at: '2026-01-31T09:00:00Z' })
      await o.scheduled()
      deepEqual(
        o.mails().map((mail) => mail.header('subject')),
        ['1 tasks for today'],
      )
    },
    'lead-round-robin': async (o) => {
      const sellers = [
        await createMember(servers().db, o.organizationId),
        await createMember(servers().db, o.organizationId),
      ]
      await o.env({ sales_owner_ids: sellers.join(', ') })
      for (const name of ['ada', 'bob', 'cy']) await o.create('contacts', { email: o.address(name) })
      await o.triggered(3)
      const owners = (await o.rows('contacts')).map(({ owner_id }) => owner_id)
      deepEqual(
        sellers.map((one) => owners.filter((owner) => owner === one).length),
        [2, 1],
      )
    },
  }

  it('each have a case here', () => {
    deepEqual(Object.keys(cases).sort(), templates.map(({ id }) => id).sort())
  })

  for (const [id, work] of Object.entries(cases))
    it(`run: ${id}`, async () => {
      const o = await office(id)
      await work(o)
      await o.done()
    })
})
