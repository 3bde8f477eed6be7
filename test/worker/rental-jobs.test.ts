import { deepEqual, equal, ok } from 'node:assert/strict'
import { describeJobs, type Job } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import type { Reply } from '../support/with-offices.ts'
import { chatReply } from '../support/with-offices.ts'

/** The jobs of a company that rents out machines and keeps buildings. */

const DAY = 86_400_000

interface Region {
  group: { region: string }
  values: { total: number; jobs: number }
}
const status = (code: number, body: object): Reply => ({ status: code, body })

const INVOICES = [1, 2, 3, 4, 5, 6, 7].map((n) => ({
  id: `INV-${n}`,
  customer: 'City Clinic',
  amount: (n * 100.1).toFixed(2),
  region: n % 2 ? 'South' : 'North',
  due: `2026-11-${10 + n}`,
}))
const MACHINES = [
  { serial: 'EX-100', hours: 120.5, model: 'Excavator 1.5t' },
  { serial: 'SL-200', hours: 510, model: 'Scissor lift' },
  { serial: 'EX-101', hours: 499.9 },
  { serial: 'GN-300', hours: 1200, model: 'Generator' },
]

const jobs: Record<string, Job> = {
  'new-lead-mail': {
    fields: { contacts: { company_name: 'text' } },
    async work(o) {
      const lead = { email: o.address('eva'), lead_source: 'web_form' }
      const company = { custom_fields: { company_name: 'Huber Bau' } }
      await o.create('contacts', {
        ...lead,
        ...company,
        first_name: 'Eva',
        last_name: 'Huber',
        phone: '+43 1 5',
      })
      await o.create('contacts', { first_name: 'No', last_name: 'Mail', lead_source: 'trade_fair' })
      await o.create('contacts', { ...lead, email: o.address('max'), first_name: 'Max', last_name: 'Ott' })
      await o.runs(2)
      equal(o.mails()[0]!.to, o.address('sales'))
      deepEqual(
        o
          .mails()
          .map(({ subject, text }) => `${subject} (${text})`)
          .sort(),
        ['New lead: Eva Huber (Huber Bau, +43 1 5)', 'New lead: Max Ott (no company, no phone)'],
      )
    },
  },
  'key-account-tag': {
    fields: { contacts: { annual_rental: 'number' } },
    async work(o) {
      const created = async (annual_rental: number, tags: string[]) =>
        String((await o.create('contacts', { first_name: 'K', tags, custom_fields: { annual_rental } })).id)
      const [large, small, shrinking] = [
        await created(10_000, ['x']),
        await created(9_999.99, []),
        await created(12_000, ['y']),
      ]
      const tags = async () =>
        Promise.all([large, small, shrinking].map(async (id) => (await o.records.get('contacts', id)).tags))
      // Three creations, and the two updates by the workflow itself.
      await o.runs(5)
      deepEqual(await tags(), [['x', 'key-account'], [], ['y', 'key-account']])
      await o.records.update('contacts', shrinking, { custom_fields: { annual_rental: 500 } })
      await o.runs(7)
      deepEqual(await tags(), [['x', 'key-account'], [], ['y']])
    },
  },
  'quote-total': {
    async work(o) {
      const send = await o.hook()
      await send({ day_rate: 89.9, days: 7, discount_pct: 10 })
      await send({ day_rate: 45, days: 1 })
      await send({ day_rate: 0.1, days: 3, discount_pct: 0 })
      await send({ day_rate: '89.90', days: '7', discount_pct: '10' })
      await o.runs(4)
      deepEqual(
        o
          .bodies('quotes')
          .map(({ net, vat, gross }) => `${net} ${vat} ${gross}`)
          .sort(),
        ['0.30 0.06 0.36', '45.00 9.00 54.00', '566.37 113.27 679.64', '566.37 113.27 679.64'],
      )
    },
  },
  'follow-up-task': {
    async work(o) {
      const contact = await o.create('contacts', { first_name: 'Dealer' })
      for (const amount of ['5000', '5000.01'])
        await o.create('deals', { name: amount, amount, contact_id: contact.id })
      const alone = await o.create('deals', { name: 'alone' })
      await o.runs(3)
      const tasks = await o.rows('tasks')
      deepEqual(tasks.map(({ title, type, priority }) => [title, type, priority]).sort(), [
        ['Call 5000', 'call', 'medium'],
        ['Call 5000.01', 'call', 'high'],
        ['Call alone', 'call', 'medium'],
      ])
      const { id, due_at } = tasks.find(({ title }) => title === 'Call alone')!
      equal(due_at.getTime() - Date.parse(String(alone.created_at)), 3 * DAY)
      const related = async (task: string, kind: string) =>
        (await o.request('GET', `/objects/tasks/${task}/${kind}`)).data.map((one: { id: string }) => one.id)
      deepEqual([await related(id, 'deals'), await related(id, 'contacts')], [[alone.id], []])
      deepEqual(await related(tasks.find(({ priority }) => priority === 'high')!.id, 'contacts'), [
        contact.id,
      ])
    },
  },
  'clean-contact': {
    async work(o) {
      const contacts = [
        { email: `  Info@${'clean-contact'.toUpperCase()}.example.com `, phone: '0043 664 12 34' },
        { phone: '+43 1 2' },
        { email: 'Only@mail.example.com' },
      ]
      for (const one of contacts) await o.create('contacts', one)
      await o.runs(3)
      deepEqual(
        (await o.rows('contacts')).map(({ email, phone }) => [email, phone]),
        [
          ['info@clean-contact.example.com', '+436641234'],
          [null, '+4312'],
          ['only@mail.example.com', null],
        ],
      )
    },
  },
  'frost-warning': {
    replies: ({ path }) => {
      const city = new URL(path, 'http://x').searchParams.get('city')!
      return { body: { city, min_temp: { Graz: -6, Linz: 2 }[city] ?? 0 } }
    },
    async work(o) {
      for (const city of ['Graz', 'Linz', 'Wien']) await o.run({ city })
      deepEqual(
        o.mails().map(({ to, subject }) => [to, subject]),
        [[o.address('depot'), 'Frost in Graz: -6']],
      )
    },
  },
  'credit-check': {
    replies: ({ path }) => {
      const score = { good: 720, poor: 480 }[path.split('/').at(-1)!]
      return score ? { body: { score } } : status(404, { error: 'unknown company' })
    },
    async work(o) {
      const checked = async (last_name: string) => {
        const { id } = await o.create('contacts', { last_name, lead_status: 'new' })
        await o.run({ contact_id: id })
        return (await o.records.get('contacts', String(id))).lead_status
      }
      deepEqual(
        [await checked('Good'), await checked('Poor'), await checked('Nobody')],
        ['open', 'unqualified', 'new'],
      )
      deepEqual(
        (await o.rows('notes')).map(({ body }) => body),
        ['unknown company'],
      )
    },
  },
  salutation: {
    async work(o) {
      const said = async (inputs: object) => (await o.run(inputs)).salutation
      equal(await said({ lang: 'de', gender: 'f', name: 'Huber' }), 'Sehr geehrte Frau Huber')
      equal(await said({ lang: 'de', gender: 'm', name: 'Ott' }), 'Sehr geehrter Herr Ott')
      equal(await said({ lang: 'fr', gender: 'f', name: 'Blanc' }), 'Dear Blanc')
      equal(await said({ lang: 'de', name: 'Xeno' }), 'Dear Xeno')
    },
  },
  'invoice-import': {
    replies: ({ path }) => {
      const page = Number(new URL(path, 'http://x').searchParams.get('page'))
      return { body: { data: INVOICES.slice(page * 3 - 3, page * 3), has_more: page < 3 } }
    },
    async work(o) {
      for (let n = 0; n < 2; n++) {
        deepEqual(await o.run(), { count: 7, total: '2802.80' })
        const mail = o.mails()[n]!
        equal(mail.subject, '7 invoices imported, 2802.80')
        deepEqual(mail.text.split(/\r?\n/).sort(), ['North: 1201.20', 'South: 1601.60'])
        equal((await o.rows('deals')).length, 7)
      }
    },
  },
  'machine-hours': {
    replies: ({ path }) => {
      const from = Number(new URL(path, 'http://x').searchParams.get('cursor') ?? 0)
      return { body: { machines: MACHINES.slice(from, from + 2), next: from === 0 ? '2' : null } }
    },
    async work(o) {
      const known = { model: 'Mini excavator', hours: 10 }
      await o.create('companies', { external_id: 'EX-101', name: 'old name', custom_fields: known })
      await o.run()
      const rows = await o.rows('companies')
      deepEqual(
        rows
          .map(({ external_id, name, custom_fields: f }) => [
            external_id,
            name,
            f.model,
            f.hours,
            f.service_due,
          ])
          .sort(),
        [
          ['EX-100', 'Machine EX-100', 'Excavator 1.5t', 120.5, false],
          ['EX-101', 'Machine EX-101', 'Mini excavator', 499.9, false],
          ['GN-300', 'Machine GN-300', 'Generator', 1200, true],
          ['SL-200', 'Machine SL-200', 'Scissor lift', 510, true],
        ],
      )
    },
  },
  'complaint-rotation': {
    async work(o) {
      const technicians = []
      for (const complaint of ['a', 'b', 'c', 'd']) technicians.push((await o.run({ complaint })).technician)
      deepEqual(technicians, ['Ann', 'Bob', 'Cy', 'Ann'])
    },
  },
  'contract-approval': {
    fields: { deals: { discount: 'number' } },
    async work(o) {
      const asked = async (discount: number, decision?: 'approved' | 'rejected') => {
        const deal = { name: `Deal ${discount} ${decision}`, amount: '1000', custom_fields: { discount } }
        const { id } = await o.create('deals', deal)
        const run = await o.start({ deal_id: id })
        if (decision) {
          // Nobody is asked any more once it is decided.
          await until(() =>
            o.mails().some(({ to, subject }) => to === o.address('manager') && subject?.includes(decision)),
          )
          await o.decide(run, decision)
        }
        await o.completed(run)
        return (await o.records.get('deals', String(id))).stage
      }
      deepEqual([await asked(10), await asked(20, 'approved')], ['won', 'won'])
      deepEqual(await asked(20, 'rejected'), 'lead')
      deepEqual(o.bodies('contracts'), [
        { deal: 'Deal 10 undefined', amount: '1000.00' },
        { deal: 'Deal 20 approved', amount: '1000.00' },
      ])
      const [mail] = o.mails().filter(({ to }) => to === o.address('sales'))
      deepEqual([mail!.subject, mail!.text], ['No discount for Deal 20 rejected', 'rejected: fine'])
      const [request] = o.mails().filter(({ to }) => to === o.address('manager'))
      equal(request!.subject, 'Discount of 20 % for Deal 20 approved')
    },
  },
  'duplicate-leads': {
    fields: { contacts: { company_name: 'text' } },
    async work(o) {
      const lead = async (first_name: string, company_name?: string, phone: string | null = '+43 1 77') =>
        o.create('contacts', { first_name, phone, ...(company_name && { custom_fields: { company_name } }) })
      const first = await lead('first', 'Dup AG')
      await o.runs(1)
      const second = await lead('second', 'Dup AG')
      await lead('other', 'Other AG')
      await lead('none')
      await lead('silent', 'Dup AG', null)
      await o.runs(4)
      const tags = (await o.rows('contacts')).map((row) => [row.first_name, ...row.tags])
      deepEqual(tags, [
        ['first', 'unique'],
        ['second', 'duplicate'],
        ['other', 'unique'],
        ['none', 'unique'],
        ['silent'],
      ])
      const { data } = await o.request('GET', `/objects/contacts/${first.id}/notes`)
      deepEqual(
        data.map(({ body }: { body: string }) => body),
        [`Duplicate: ${second.id}`],
      )
    },
  },
  'appointment-reminder': {
    async work(o) {
      const email = o.address('customer')
      const year = new Date().getUTCFullYear() + 1
      const winter = await o.start({ email, start: `${year}-12-10T09:00` })
      const summer = await o.start({ email, start: `${year}-07-01T09:00` })
      equal(await o.waitsUntil(winter), `${year}-12-09T08:00:00.000Z`)
      equal(await o.waitsUntil(summer), `${year}-06-30T07:00:00.000Z`)
      for (const run of [winter, summer]) await o.request('POST', `/runs/${run}/cancel`, {})
      const past = await o.run({ email, start: '2026-01-20T09:00' })
      deepEqual(past, { start: '2026-01-20T08:00:00.000Z', remind_at: '2026-01-19T08:00:00.000Z' })
      deepEqual(
        o
          .mails()
          // Without the day of the week.
          .map(({ subject, text }) => `${subject}: ${text.replace(/\w{3} (?=\d)/, '')}`)
          .sort(),
        [
          'Reminder: See you 20 Jan 2026, 09:00',
          `Your appointment: 1 Jul ${year}, 09:00 (${year}-07-01T07:00:00.000Z)`,
          `Your appointment: 10 Dec ${year}, 09:00 (${year}-12-10T08:00:00.000Z)`,
          'Your appointment: 20 Jan 2026, 09:00 (2026-01-20T08:00:00.000Z)',
        ],
      )
    },
  },
  dunning: {
    async work(o) {
      const due = { A: '2026-11-27', B: '2026-11-20', C: '2026-11-19', D: '2026-10-01' }
      const invoices = Object.entries(due).map(([id, day]) => ({ id, due: day }))
      equal(Number((await o.run({ today: '2026-11-27', invoices })).fees), 45)
      deepEqual(o.bodies(), [
        { invoice: 'B', days: 7, level: 'reminder', fee: 0 },
        { invoice: 'C', days: 8, level: 'dunning 1', fee: 5 },
        { invoice: 'D', days: 57, level: 'collection', fee: 40 },
      ])
      equal(Number((await o.run({ today: '2026-11-27', invoices: [] })).fees), 0)
    },
  },
  'winter-campaign': {
    async work(o) {
      const people = { one: ['winter'], two: ['winter', 'vip'], three: ['winter', 'opt-out'], four: [] }
      for (const [name, tags] of Object.entries(people))
        await o.create('contacts', { first_name: name, email: o.address(name), tags })
      await o.create('contacts', { first_name: 'Without', tags: ['winter'] })
      deepEqual([await o.run(), await o.run()], [{ sent: 2 }, { sent: 0 }])
      deepEqual(
        o
          .mails()
          .map(({ to }) => to)
          .sort(),
        [o.address('one'), o.address('two')],
      )
    },
  },
  'booking-with-undo': {
    replies: ({ path, body }) => {
      if (path === '/depot/reserve')
        return body.qty > 5
          ? status(409, { error: 'not enough stock' })
          : status(201, { reservation_id: `R-${body.sku}` })
      if (path === '/truck/book')
        return body.zip === '99999'
          ? status(422, { error: 'no route' })
          : status(201, { booking_id: `T-${body.zip}` })
      return {}
    },
    async work(o) {
      const booked = async (sku: string, qty: number, zip: string) =>
        (await o.ended(await o.start({ sku, qty, zip }))).status
      equal(await booked('EX', 2, '1010'), 'completed')
      equal(await booked('SL', 2, '99999'), 'failed')
      equal(await booked('GN', 9, '1010'), 'failed')
      deepEqual(o.paths(), [
        'POST /depot/reserve',
        'POST /truck/book',
        'POST /contracts',
        'POST /depot/reserve',
        'POST /truck/book',
        'POST /depot/release',
        'POST /depot/reserve',
      ])
      deepEqual(o.bodies('contracts'), [{ reservation: 'R-EX', booking: 'T-1010' }])
      deepEqual(o.bodies('depot/release'), [{ reservation_id: 'R-SL' }])
      deepEqual(
        o.mails().map(({ subject }) => subject),
        ['Booking failed: no route', 'Booking failed: not enough stock'],
      )
    },
  },
  'quote-follow-up': {
    async work(o) {
      const quote = async (name: string, source = 'followup') =>
        String((await o.create('deals', { name, amount: '10', currency: 'EUR', source })).id)
      await quote('Untouched')
      const [won, renamed, lost] = [await quote('Won'), await quote('Renamed'), await quote('Lost')]
      await quote('Other', 'shop')
      await o.records.update('deals', lost, { stage: 'lost' })
      await o.records.update('deals', renamed, { name: 'Renamed again' })
      await o.records.update('deals', won, { stage: 'won' })
      const runs = await o.runs(4)
      deepEqual(runs.map(({ status }) => status).sort(), ['cancelled', 'cancelled', 'completed', 'completed'])
      deepEqual(
        o
          .mails()
          .map(({ subject, text }) => `${subject} (${text})`)
          .sort(),
        [
          'Still interested? Renamed (Renamed: 10.00 EUR)',
          'Still interested? Untouched (Untouched: 10.00 EUR)',
        ],
      )
    },
  },
  'complaint-digest': {
    async work(o) {
      const send = await o.hook()
      const complaints = { A: ['one', 'two', 'three'], B: ['solo'] }
      for (const [site, texts] of Object.entries(complaints))
        for (const text of texts) await send({ site, text })
      await until(() => o.mails().length >= 2)
      await o.runs(2)
      deepEqual(
        o
          .mails()
          .map(({ subject, text }) => `${subject}, ${text}`)
          .sort(),
        ['Complaints at A, Last: three', 'Complaints at B, Last: solo'],
      )
    },
  },
  'dispatch-in-turn': {
    async work(o) {
      const runs = []
      for (const [tech, job] of [
        ['T1', 'j1'],
        ['T1', 'j2'],
        ['T2', 'j3'],
      ])
        runs.push(await o.start({ tech, job }))
      await Promise.all(runs.map(o.completed))
      const phases = (of: string) =>
        o
          .bodies()
          .filter(({ tech }) => tech === of)
          .map(({ phase, job }) => `${phase} ${job}`)
      deepEqual(phases('T1'), ['start j1', 'end j1', 'start j2', 'end j2'])
      deepEqual(phases('T2'), ['start j3', 'end j3'])
      // That of the other technician does not wait for the first two.
      const order = o.bodies().map(({ phase, job }) => `${phase} ${job}`)
      ok(order.indexOf('start j3') < order.indexOf('start j2'))
    },
  },
  'external-job': {
    replies: ({ method, path, body }, count) => {
      if (path === '/jobs' && method === 'POST') return status(202, { job_id: `j${body.ref}` })
      if (path === '/jobs/jbad')
        return { body: { status: count >= 2 ? 'failed' : 'running', reason: 'corrupt file' } }
      if (path.startsWith('/jobs/'))
        return { body: { status: count >= 3 ? 'done' : 'running', url: `https://files.example.com${path}` } }
      return {}
    },
    async work(o) {
      await o.run({ ref: 'good' })
      const { status, error } = await o.ended(await o.start({ ref: 'bad' }))
      deepEqual([status, error?.message], ['failed', 'job bad failed'])
      const polls = ['GET /jobs/jgood', 'GET /jobs/jgood', 'GET /jobs/jgood']
      deepEqual(o.paths(), [
        'POST /jobs',
        ...polls,
        'POST /jobs',
        'GET /jobs/jbad',
        'GET /jobs/jbad',
        'POST /alerts',
      ])
      deepEqual(o.bodies('alerts'), [{ ref: 'bad', reason: 'corrupt file' }])
      deepEqual(o.mails(), [
        { to: o.address('ops'), subject: 'Job good done', text: 'https://files.example.com/jobs/jgood' },
      ])
    },
  },
  'quote-of-lines': {
    async work(o) {
      const winter = { days: 7, day_rate: 89.9, season: 'winter' }
      const lines = [winter, { days: 2, day_rate: 45, season: 'summer' }]
      deepEqual(await o.run({ lines }), { total: '797.96' })
      deepEqual(o.bodies('quotes'), [
        {
          total: '797.96',
          lines: [
            { days: 7, price: '707.96' },
            { days: 2, price: '90.00' },
          ],
        },
      ])
    },
  },
  'complaint-triage': {
    replies: ({ body }) => {
      const asked = JSON.stringify(body.messages)
      if (asked.includes('AIBOOM')) return status(500, { error: { message: 'model down' } })
      const category = asked.includes('smoke')
        ? 'urgent'
        : asked.includes('invoice')
          ? 'billing'
          : 'I cannot tell'
      return chatReply(JSON.stringify({ category }))
    },
    async work(o) {
      const send = await o.hook({ response_wait: 10 })
      const texts = {
        'smoke from heater': 'urgent',
        'invoice wrong': 'billing',
        hello: 'other',
        AIBOOM: 'other',
      }
      for (const [text, category] of Object.entries(texts)) {
        const answer = await send({ text })
        const ticket = (await o.rows('tasks')).find(({ title }) => title === `Complaint: ${text}`)
        deepEqual([answer.status, answer.body], [201, { ticket: ticket.id, category }])
        deepEqual([ticket.priority, ticket.tags], [category === 'urgent' ? 'urgent' : 'medium', [category]])
      }
      const runs = await o.runs(4)
      deepEqual(new Set(runs.map(({ status }) => status)), new Set(['completed']))
      deepEqual(
        o.mails().map(({ to, text }) => [to, text]),
        [[o.address('oncall'), 'smoke from heater']],
      )
    },
  },
  'weekly-revenue': {
    replies: ({ path }) =>
      path === '/permit/down' ? status(500, { error: 'down' }) : { body: { permit: 'P-1' } },
    async work(o) {
      const jobOf = (region: string, amount: number, technician: string, permit = 'ok') => ({
        region,
        amount,
        technician,
        permit,
      })
      await o.run({
        jobs: [
          jobOf('North', 100.1, 'ann'),
          jobOf('North', 200.2, 'bob'),
          jobOf('South', 50, 'ann'),
          jobOf('South', 0.05, 'cy'),
          jobOf('West', 10, 'ann', 'down'),
          jobOf('North', 1, 'bob'),
        ],
      })
      const [{ regions, ...report }] = o.bodies('reports')
      deepEqual(regions.map((one: Region) => [one.group.region, one.values.total, one.values.jobs]).sort(), [
        ['North', 301.3, 3],
        ['South', 50.05, 2],
        ['West', 10, 1],
      ])
      deepEqual(report, { total: 361.35, top: 'bob', top_total: 201.2, failed_permits: 1 })
    },
  },
}

describeJobs('the jobs of a rental company', 'rental', jobs)
