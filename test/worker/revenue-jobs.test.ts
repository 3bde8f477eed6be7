import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { describeJobs, type Job } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { chatReply, type Reply } from '../support/with-offices.ts'

/** The jobs of a software company that sells through partners. */

const DAY = 86_400_000
const status = (code: number, body: object = {}): Reply => ({ status: code, body })
const dayFromNow = (days: number) => new Date(Date.now() + days * DAY).toISOString().slice(0, 10)

const INVOICES = [
  { amount: '1000.10', currency: 'EUR', status: 'open', due_date: '2025-11-01' },
  { amount: '500.00', currency: 'EUR', status: 'paid', due_date: '2025-11-01' },
  { amount: '250.20', currency: 'EUR', status: 'open', due_date: '2025-10-20' },
  { amount: '99.99', currency: 'USD', status: 'open', due_date: '2025-11-20' },
  { amount: '77.77', currency: 'USD', status: 'open', due_date: '2099-01-20' },
]

const jobs: Record<string, Job> = {
  'trial-signup': {
    async work(o) {
      const created = async (plan: string) => {
        const { id, created_at } = await o.create('contacts', { first_name: plan, custom_fields: { plan } })
        return { id: String(id), created_at: String(created_at) }
      }
      const [paid, trial] = [await created('paid'), await created('trial')]
      await o.runs(1)
      const { lead_status, tags, custom_fields } = await o.records.get('contacts', trial.id)
      const trial_end = new Date(Date.parse(trial.created_at) + 14 * DAY).toISOString().slice(0, 10)
      deepEqual([lead_status, tags, custom_fields], ['open', ['trial'], { plan: 'trial', trial_end }])
      deepEqual((await o.records.get('contacts', paid.id)).tags, [])
    },
  },
  'nps-response': {
    async work(o) {
      const email = o.address('customer')
      for (const score of [3, 8, 10, 0]) await o.run({ email, score })
      const [first, second] = [`Call detractor ${email} (score 0)`, `Call detractor ${email} (score 3)`]
      deepEqual(await o.titles(), [first, second])
      const [{ due_at, priority, type }] = await o.rows('tasks')
      ok(Math.abs(due_at - Date.now() - DAY) < 600_000)
      deepEqual([priority, type], ['high', 'call'])
      deepEqual(
        o.mails().map(({ to, subject }) => [to, subject]),
        [[email, 'Thank you for your score of 10']],
      )
    },
  },
  'ticket-to-chat': {
    async work(o) {
      const subjects = ['API DOWN again', 'Invoice question', 'Urgent: login']
      for (const subject of subjects) await o.run({ ticket_id: 'T-1', subject })
      deepEqual(
        o.bodies('slack').map(({ text }) => text),
        ['[SEV1] API DOWN again', '[SEV3] Invoice question', '[SEV1] Urgent: login'],
      )
    },
  },
  'clean-names': {
    async work(o) {
      const custom_fields = { clean: 'yes' }
      await o.create('contacts', {
        first_name: 'aDA',
        last_name: 'lovelace',
        email: 'Ada.L@Example.COM',
        phone: '+49 170-123 45',
        custom_fields,
      })
      await o.create('contacts', {
        first_name: 'GRACE',
        last_name: 'hopper',
        email: 'g@example.com',
        custom_fields,
      })
      await o.runs(2)
      deepEqual(
        (await o.rows('contacts')).map((row) => [row.first_name, row.last_name, row.email, row.phone]),
        [
          ['Ada', 'Lovelace', 'ada.l@example.com', '+4917012345'],
          ['Grace', 'Hopper', 'g@example.com', null],
        ],
      )
    },
  },
  'renewal-level': {
    async work(o) {
      const level = (days: number) => o.run({ company: 'Acme', renewal_date: dayFromNow(days) })
      deepEqual(await level(10), { days_left: 10, level: 'red' })
      deepEqual(await level(50), { days_left: 50, level: 'amber' })
      deepEqual(await level(186), { days_left: 186, level: 'green' })
    },
  },
  'webinar-attendee': {
    async work(o) {
      const attended = (name: string, minutes: number) =>
        o.run({ email: o.address(name.split(' ')[0]!.toLowerCase()), name, minutes })
      deepEqual(await attended('Ada Lovelace', 45), { tag: 'webinar-attended', created: true })
      deepEqual(await attended('Bob van Dam', 0), { tag: 'webinar-noshow', created: true })
      deepEqual(await attended('Cher', 12), { tag: 'webinar-left-early', created: true })
      deepEqual(await attended('Ada Lovelace', 45), { tag: 'webinar-attended', created: false })
      deepEqual(
        (await o.rows('contacts')).map(({ first_name, last_name, tags }) => [first_name, last_name, tags]),
        [
          ['Ada', 'Lovelace', ['webinar-attended']],
          ['Bob', 'van Dam', ['webinar-noshow']],
          // The last part of a name that has one part.
          ['Cher', 'Cher', ['webinar-left-early']],
        ],
      )
    },
  },
  'overdue-invoices': {
    replies: ({ path }) => {
      const page = Number(new URL(path, 'http://x').searchParams.get('page'))
      return { body: { data: INVOICES.slice(page * 2 - 2, page * 2), has_more: page < 3 } }
    },
    async work(o) {
      const { groups, ...totals } = await o.run()
      deepEqual(totals, { count: 3, EUR: '1250.30', USD: '99.99' })
      equal(o.calls('billing').length, 3)
    },
  },
  'discount-approval': {
    async work(o) {
      const asked = async (discount: number, decision?: 'approved' | 'rejected') => {
        const deal_id = String((await o.create('deals', { name: `${discount} ${decision}` })).id)
        const run = await o.start({ deal_id, discount, rep: o.address('rep') })
        if (decision) await o.decide(run, decision)
        await o.completed(run)
        return (await o.fieldsOf('deals', deal_id)).discount_status
      }
      deepEqual(
        [await asked(5), await asked(25, 'approved'), await asked(25, 'rejected')],
        ['approved', 'approved', 'rejected'],
      )
      await o.change('timeout: 3d', 'timeout: 1s')
      equal(await asked(25), 'expired')
      const told = o.mails().filter(({ to }) => to === o.address('rep'))
      deepEqual(
        told.map(({ text }) => text),
        ['Nobody decided about 25 %.'],
      )
    },
  },
  'lead-rotation': {
    async work(o) {
      const leads = ['1', '2', '3', '4'].map((name) => ({ email: o.address(name) }))
      const [a, b, c] = ['a', 'b', 'c'].map(o.address)
      deepEqual(await o.run({ leads }), { reps: [a, b, c, a] })
      deepEqual(await o.run({ leads: leads.slice(0, 2) }), { reps: [b, c] })
      const tasks = (await o.rows('tasks')).map(({ body }) => body)
      deepEqual(
        tasks,
        [a, b, c, a, b, c].map((rep) => `Assigned to ${rep}`),
      )
    },
  },
  'sla-due-date': {
    async work(o) {
      const due = async (priority: string, tz: string) =>
        (await o.run({ opened_at: '2026-11-27T22:30:00Z', priority, tz })).due
      equal(await due('p1', 'Europe/Berlin'), 'Mon, 30 Nov 2026 09:00')
      equal(await due('p1', 'Asia/Tokyo'), 'Mon, 30 Nov 2026 09:00')
      equal(await due('p2', 'Europe/Berlin'), 'Wed, 2 Dec 2026 09:00')
    },
  },
  'company-import': {
    replies: () => ({
      body: {
        companies: [
          { name: 'Acme', domain: 'acme.example', employees: 25 },
          { name: 'Beta', domain: 'beta.example', employees: 7, phone: null },
        ],
      },
    }),
    async work(o) {
      await o.create('companies', {
        name: 'Acme',
        domain: 'acme.example',
        phone: '+1 1',
        employee_count: 10,
        tags: ['vip'],
      })
      deepEqual(await o.run(), { ok: 2, failed: 0 })
      deepEqual(
        (await o.rows('companies')).map((row) => [row.domain, row.employee_count, row.phone, row.tags]),
        [
          ['acme.example', 25, '+1 1', ['vip']],
          ['beta.example', 7, null, ['imported']],
        ],
      )
    },
  },
  'churn-risk': {
    async work(o) {
      const companies: [string, number, number, string[]?][] = [
        ['A', 40, 20_000],
        ['B', 60, 20_000],
        ['C', 40, 5_000],
        ['D', 10, 50_000, ['churned']],
        ['E', 49, 10_000],
        ['F', 9, 100_000],
      ]
      for (const [name, health, arr, tags = []] of companies)
        await o.create('companies', { name, tags, custom_fields: { health, arr } })
      deepEqual(await o.run(), { count: 3 })
      deepEqual(await o.titles(), ['Churn review: A', 'Churn review: E', 'Churn review: F'])
    },
  },
  referrals: {
    async work(o) {
      await o.create('contacts', { email: o.address('old'), first_name: 'Old' })
      const rows = { X: ['later', 3], x: ['first', 1], y: ['both', 2], Y: ['both', 4], old: ['known', 1] }
      const referrals = Object.entries(rows).map(([name, [partner, day]]) => ({
        email: o.address(name),
        partner,
        created: `2026-11-0${day}`,
      }))
      const { created, ...counts } = await o.run({ referrals })
      deepEqual((created as string[]).sort(), [o.address('x'), o.address('y')])
      deepEqual(counts, { existing: 1, duplicates: 2 })
      const contacts = (await o.rows('contacts')).map(({ email, lead_source }) => [email, lead_source])
      deepEqual(contacts.sort(), [
        [o.address('old'), null],
        [o.address('x'), 'first'],
        [o.address('y'), 'both'],
      ])
    },
  },
  'trial-end': {
    async work(o) {
      const email = o.address('trial')
      const ending = (days: number, ms = 0) => ({
        email,
        trial_ends_at: new Date(Date.now() + days * DAY + ms).toISOString(),
      })
      const late = ending(5)
      const later = await o.start(late)
      equal(Date.parse(await o.waitsUntil(later)), Date.parse(late.trial_ends_at) - 3 * DAY)
      await o.request('POST', `/runs/${later}/cancel`, {})
      for (const trial of [ending(-1), ending(1), ending(3, 500)]) await o.run(trial)
      const day = (days: number) =>
        new Date(Date.now() + days * DAY).toLocaleDateString('en-GB', {
          day: 'numeric',
          month: 'long',
          year: 'numeric',
          timeZone: 'UTC',
        })
      deepEqual(
        o.mails().map(({ to, subject }) => [to, subject]),
        [1, 3].map((days) => [email, `Your trial ends on ${day(days)}`]),
      )
    },
  },
  provisioning: {
    replies: ({ method, path, body }) => {
      if (method === 'DELETE') return { status: 204 }
      if (path === '/tenants') return status(201, { id: `T-${body.name}` })
      if (path === '/licences') return status(201, { id: `L-${body.tenant}` })
      return body.host.startsWith('down') ? status(500, { error: 'dns down' }) : status(201, { id: 'D-1' })
    },
    async work(o) {
      const provisioned = async (name: string) => {
        const deal_id = String((await o.create('deals', { name })).id)
        const run = await o.ended(await o.start({ deal_id, name }))
        return [run.status, (await o.fieldsOf('deals', deal_id)).provision]
      }
      deepEqual(await provisioned('up'), ['completed', 'done'])
      const made = ['POST /tenants', 'POST /licences', 'POST /dns']
      deepEqual(o.paths(), made)
      deepEqual(await provisioned('down'), ['failed', 'failed'])
      const undone = ['DELETE /licences/L-T-down', 'DELETE /tenants/T-down']
      deepEqual(o.paths(), [...made, ...made, 'POST /dns', ...undone])
    },
  },
  'trial-nurture': {
    async work(o) {
      const custom_fields = { plan: 'trial16' }
      const mailed = (name: string) =>
        o
          .mails()
          .filter(({ to }) => to === o.address(name))
          .map(({ subject }) => subject)
      const contact = (name: string) =>
        o.create('contacts', { first_name: name, email: o.address(name), custom_fields })
      await contact('stays')
      const { id } = await contact('pays')
      await until(() => mailed('pays').length === 1)
      await o.records.update('contacts', String(id), { custom_fields: { plan: 'paid' } })
      const runs = await o.runs(2)
      deepEqual(runs.map(({ status }) => status).sort(), ['cancelled', 'completed'])
      deepEqual([mailed('stays'), mailed('pays')], [['Getting started', 'Need help?'], ['Getting started']])
    },
  },
  'debounced-sync': {
    async work(o) {
      const company = async (name: string) =>
        String((await o.create('companies', { name, domain: `${name}.example`, tags: ['sync'] })).id)
      const [p, q] = [await company('p'), await company('q')]
      for (const employee_count of [1, 2, 3, 4]) await o.records.update('companies', p, { employee_count })
      await o.records.update('companies', q, { industry: 'Looms' })
      await until(() => o.calls('sync').length >= 2)
      await o.runs(2)
      deepEqual(o.paths().sort(), ['POST /sync/p.example', 'POST /sync/q.example'])
      deepEqual(o.bodies('sync/p.example'), [{ name: 'p', industry: null, employees: 4 }])
      deepEqual(o.bodies('sync/q.example'), [{ name: 'q', industry: 'Looms', employees: null }])
    },
  },
  'usage-meter': {
    async work(o) {
      const total = async (external_id: string) => {
        const found = (await o.rows('companies')).find((row) => row.external_id === external_id)
        return Number(found.custom_fields.usage_total)
      }
      for (const external_id of ['S', 'U']) await o.create('companies', { name: external_id, external_id })
      const send = await o.hook()
      const events = [1, 2, 3, 4, 5].map((units) => ({ account: 'S', units }))
      await Promise.all([...events, { account: 'U', units: 10 }, { account: 'U', units: 20 }].map(send))
      await o.runs(7)
      deepEqual([await total('S'), await total('U')], [15, 30])
    },
  },
  'export-job': {
    replies: ({ method, path, body }, count) => {
      if (method === 'POST') return status(202, { job: body.kind })
      if (path.endsWith('/result'))
        return { body: { rows: [{ name: 'r1' }, { name: 'r2' }, { name: 'r3' }] } }
      if (path === '/exports/fail')
        return { body: { status: count < 2 ? 'running' : 'failed', message: 'quota' } }
      return { body: { status: path === '/exports/contacts' && count >= 4 ? 'done' : 'running' } }
    },
    async work(o) {
      deepEqual(await o.run({ kind: 'contacts' }), { rows: 3 })
      deepEqual(await o.titles(), ['Exported r1', 'Exported r2', 'Exported r3'])
      equal(o.paths().filter((path) => path === 'GET /exports/contacts').length, 4)
      const { status, error } = await o.ended(await o.start({ kind: 'fail' }))
      deepEqual([status, error?.message], ['failed', 'quota'])
      await o.run({ kind: 'never' })
      equal(o.paths().filter((path) => path === 'GET /exports/never').length, 10)
      const [mail] = o.mails()
      deepEqual([mail!.to, mail!.subject], [o.address('ops'), 'Export never timed out'])
    },
  },
  'price-renewals': {
    async work(o) {
      const deals = [
        { name: 'A', amount: '1000.00', currency: 'EUR', uplift: 5 },
        { name: 'B', amount: '333.33', currency: 'EUR', uplift: 7 },
        { name: 'C', amount: '200', currency: 'USD', uplift: 0 },
      ]
      const outputs = (await o.run({ deals })) as Record<string, Priced[]>
      deepEqual(
        outputs.deals!.map(({ name, amount, tier }) => [name, amount, tier]),
        [
          ['A', '1050.00', 'gold'],
          ['B', '356.66', 'std'],
          ['C', '200.00', 'std'],
        ],
      )
      deepEqual(
        outputs.sums!.map(({ group, values }) => [group.currency, values.total]),
        [
          ['EUR', '1406.66'],
          ['USD', '200.00'],
        ],
      )
    },
  },
  'pipeline-report': {
    fields: { deals: { owner: 'text' } },
    async work(o) {
      const amounts = { ann: ['1200.50', '800'], bob: ['5000'], cy: ['10.10', '20.20'] }
      const source = 'report'
      for (const [owner, list] of Object.entries(amounts))
        for (const amount of list)
          await o.create('deals', { name: owner, amount, source, custom_fields: { owner } })
      await o.create('deals', {
        name: 'won',
        amount: '9',
        source,
        stage: 'won',
        custom_fields: { owner: 'cy' },
      })
      await o.run({ to: o.address('sales') })
      const [mail] = o.mails()
      const rows = [...mail!.text.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row]) =>
        row!.replaceAll(/(<.*?>)+/g, ' ').trim(),
      )
      deepEqual(rows, [
        'Owner Deals Sum Average',
        'bob 1 5000.00 5000.00',
        'ann 2 2000.50 1000.25',
        'cy 2 30.30 15.15',
        'Total 5 7030.80',
      ])
      match(mail!.subject!, /^Pipeline of the week \d\d\/20\d\d$/)
    },
  },
  'ticket-triage': {
    replies: ({ body }) => {
      const asked = JSON.stringify(body.messages)
      if (asked.includes('boom')) return status(500, { error: { message: 'model down' } })
      if (asked.includes('garbage')) return chatReply('I cannot help with that')
      const odd = asked.includes('weird')
      return chatReply(
        JSON.stringify({
          category: odd ? 'sales' : 'billing',
          urgency: odd ? 9 : 4,
          summary: 'Invoice is wrong',
        }),
      )
    },
    async work(o) {
      const unknown = { category: 'unknown', urgency: 3 }
      deepEqual(await o.run({ subject: 'invoice wrong' }), { category: 'billing', urgency: 4 })
      for (const subject of ['garbage', 'boom', 'weird']) deepEqual(await o.run({ subject }), unknown)
      deepEqual(
        (await o.rows('tasks')).map(({ title, priority, tags }) => [title, priority, tags]),
        [
          ['[billing] Invoice is wrong', 'high', ['billing']],
          ...['garbage', 'boom', 'weird'].map((text) => [`[unknown] ${text}`, 'medium', ['unknown']]),
        ],
      )
    },
  },
  'partner-lead': {
    replies: ({ path }) =>
      path === '/partners/P100'
        ? { body: { code: 'P100', name: 'Big Partner' } }
        : status(404, { error: 'no' }),
    async work(o) {
      const send = await o.hook({ response_wait: 10 })
      const lead = { email: o.address('ada'), partner_code: 'P100', amount: '1200' }
      const first = await send(lead)
      const [deal, ...others] = await o.rows('deals')
      deepEqual([first.status, first.body], [201, { deal_id: deal.id, status: 'registered' }])
      deepEqual([deal.name, deal.amount, others], [`Big Partner: ${lead.email}`, '1200.00', []])
      const again = await send({ ...lead, email: lead.email.toUpperCase() })
      deepEqual([again.status, again.body], [200, { status: 'duplicate' }])
      const unknown = await send({ ...lead, partner_code: 'P404' })
      deepEqual([unknown.status, unknown.body], [422, { error: 'unknown partner' }])
      equal((await o.rows('deals')).length, 1)
    },
  },
  enrichment: {
    replies: ({ path }, count) => {
      const domain = path.slice('/enrich/'.length)
      if (path === '/crm/bulk') return count <= 2 ? status(500) : { body: { ok: true } }
      if (domain === 'missing.example') return status(404)
      if (domain === 'bad.example') return status(400)
      if (domain === 'flaky.example' && count <= 2) return status(500)
      if (domain === 'slow.example' && count === 1) return { status: 429, headers: { 'retry-after': '1' } }
      return { body: { domain } }
    },
    async work(o) {
      const found = ['ok.example', 'flaky.example', 'slow.example']
      deepEqual(await o.run({ domains: [...found, 'missing.example', 'bad.example'] }), {
        found: 3,
        not_found: ['missing.example'],
        errors: ['bad.example'],
      })
      const count = (path: string) => o.calls(path).length
      deepEqual(
        [...found, 'missing.example', 'bad.example'].map((domain) => count(`enrich/${domain}`)),
        [1, 3, 2, 1, 1],
      )
      const [asked, answered] = o.calls('enrich/slow.example')
      ok(answered!.at - asked!.at >= 1_000)
      const sent = o.calls('crm/bulk')
      equal(sent.length, 3)
      equal(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size, 1)
      deepEqual(
        sent[2]!.body.companies,
        found.map((domain) => ({ domain })),
      )
    },
  },
}

interface Priced {
  name: string
  amount: string
  tier: string
  group: { currency: string }
  values: { total: string }
}

describeJobs('the jobs of a software company', 'revenue', jobs)
