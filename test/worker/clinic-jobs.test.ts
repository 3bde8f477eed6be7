import { deepEqual, equal, match } from 'node:assert/strict'
import { createMember } from '../support/database.ts'
import { describeJobs, type Job, type JobOffice } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { chatReply } from '../support/with-offices.ts'

/** The jobs of a dental practice and of a charity. */

/** The end of a run by hand that may fail. */
const ended = async (o: JobOffice, inputs: object) => {
  const { status, outputs, error } = await o.ended(await o.start(inputs))
  return { status, outputs, error: error! }
}

/** The pipelines of the charity: the stages `received` and `paid` are won. */
const DONATIONS = {
  name: 'donations',
  label: 'Donations',
  stages: [
    { name: 'asked', probability: 20 },
    { name: 'received', outcome: 'won' },
    { name: 'declined', outcome: 'lost' },
  ],
}
const PLEDGES = {
  name: 'pledges',
  label: 'Pledges',
  stages: [
    { name: 'asked', probability: 10 },
    { name: 'promised', probability: 60 },
    { name: 'reminded', probability: 50 },
    { name: 'paid', outcome: 'won' },
    { name: 'broken', outcome: 'lost' },
  ],
}

const jobs: Record<string, Job> = {
  'recall-after-six-months': {
    fields: { contacts: { last_visit: 'date', recalled_for: 'date' } },
    async work(o) {
      const patient = (first_name: string, last_visit: string | null, more: object = {}) =>
        o.create('contacts', {
          first_name,
          email: o.address(first_name.toLowerCase()),
          custom_fields: { ...(last_visit && { last_visit }) },
          ...more,
        })
      await patient('Anna', '2026-02-28')
      await patient('Bea', '2026-03-01')
      await patient('Cem', '2025-12-01', { do_not_contact: true })
      await patient('Dora', '2025-01-05', { email: null })
      await patient('Joerg', '2025-01-05')
      await patient('Fritz', null)
      const { cutoff, sent, failed } = await o.run({ today: '2026-08-31' })
      deepEqual([cutoff, sent, failed], ['2026-02-28', [o.address('anna'), o.address('joerg')], 0])
      deepEqual((await o.run({ today: '2026-08-31' })).sent, [])
      deepEqual((await o.run({ today: '2026-09-01' })).sent, [o.address('bea')])
      deepEqual(
        new Set(o.mails().map(({ to, text }) => `${to}: ${text}`)),
        new Set([
          `${o.address('anna')}: Ihr letzter Besuch war am 28.02.2026.`,
          `${o.address('joerg')}: Ihr letzter Besuch war am 05.01.2025.`,
          `${o.address('bea')}: Ihr letzter Besuch war am 01.03.2026.`,
        ]),
      )
    },
  },
  'recurring-gift-failed': {
    async work(o) {
      const send = await o.hook()
      const gift = (status: string) =>
        send({ gift_id: 'g1', status, amount: '20', donor: { email: o.address('don') } })
      for (const status of ['failed', 'failed', 'paid', 'failed', 'failed', 'failed', 'FAILED']) {
        await gift(status)
      }
      await o.runs(7)
      deepEqual(await o.titles(), ['Gift g1 failed 3 times (20.00 CHF)'])
      const [donor] = await o.rows('contacts')
      deepEqual([donor.email, donor.tags], [o.address('don'), ['gift-lapsed']])
    },
  },
  'import-of-supporters': {
    async work(o) {
      const csv = [
        '\ufeffVorname;Nachname;E-Mail;Nr',
        'Jürgen;Weiß; JUERGEN@example.org ;007',
        ';;juergen@example.org;8',
        'Ohne;Mail;;9',
        'Foo;Bar;foo@;10',
        "Anna;O'Neil;anna@example.org;12",
        '"Meier; ""Söhne""";"a\nb";meier@example.org;14',
        '',
      ].join('\r\n')
      const outputs = await o.run({ csv })
      deepEqual(outputs, { rows: 6, without_email: 1, created: 3, updated: 1, failed: 1, bad: ['foo@'] })
      const found = await o.rows('contacts')
      deepEqual(found.map((one) => [one.first_name, one.email, one.custom_fields.member_no]).sort(), [
        ['Anna', 'anna@example.org', '12'],
        ['Jürgen', 'juergen@example.org', '8'],
        ['Meier; "Söhne"', 'meier@example.org', '14'],
      ])
      equal((await o.run({ csv: 'Vorname;Nachname;E-Mail;Nr' })).rows, 0)
    },
  },
  'gala-with-undo': {
    replies({ method, path, body }) {
      if (path === '/halls') return { status: 201, body: { id: `h-${body.date}` } }
      if (method === 'DELETE') return { status: 204 }
      return body.amount === 162.5
        ? { status: 402, body: { error: 'declined' } }
        : { body: { amount: body.amount } }
    },
    async work(o) {
      const { status } = await ended(o, { date: '2027-05-01', guests: 13 })
      equal(status, 'failed')
      deepEqual(o.paths(), ['POST /halls', 'POST /charge', 'DELETE /halls/h-2027-05-01'])
      const deals = async () => (await o.rows('deals')).filter(({ deleted_at }) => deleted_at === null)
      deepEqual(await deals(), [])
      deepEqual(await o.run({ date: '2027-06-01', guests: 40 }), { hall: 'h-2027-06-01', paid: 500 })
      equal((await deals()).length, 1)
      deepEqual(
        o.mails().map(({ subject, text }) => `${subject}: ${text}`),
        ['Gala 2027-05-01: failed: the server answered 402', 'Gala 2027-06-01: completed: fine'],
      )
    },
  },
  'payment-plan': {
    async work(o) {
      const { rates, sum } = await o.run({ total: '1000.00', rates: 3, first_due: '2027-01-31' })
      equal(sum, '1000.00')
      deepEqual(rates, [
        { title: 'Rate 1/3: 333.34 CHF', due: '2027-01-31 01:00' },
        { title: 'Rate 2/3: 333.33 CHF', due: '2027-02-28 01:00' },
        { title: 'Rate 3/3: 333.33 CHF', due: '2027-03-31 02:00' },
      ])
      const { error } = await ended(o, { total: "1'000.00", rates: 2, first_due: '2027-01-31' })
      match(error.message, /is no number/)
    },
  },
  'triage-of-messages': {
    replies({ body }, count) {
      const asked: string = body.messages.at(-1).content
      if (asked.includes('GARBAGE')) return chatReply('I cannot')
      if (asked.includes('FLAKY') && count < 2) return chatReply('{oops')
      const found = asked.includes('EIGHT')
        ? { category: 'pain', urgent: false, pain_level: 8 }
        : { category: 'pain', urgent: asked.includes('URGENT') }
      return chatReply(`\`\`\`json\n${JSON.stringify(found)}\n\`\`\``)
    },
    async work(o) {
      const [flaky, urgent, eight, normal, garbage] = await Promise.all(
        ['FLAKY', 'URGENT please', 'EIGHT', 'normal', 'GARBAGE'].map((message) => o.run({ message })),
      )
      equal(flaky!.later, 'Pain: FLAKY')
      equal(urgent!.now, 'URGENT pain: URGENT please')
      equal(eight!.now, 'URGENT pain: EIGHT')
      equal(normal!.later, 'Pain: normal')
      deepEqual([garbage!.unread, garbage!.code], ['Unread: GARBAGE', 'ai_output_invalid'])
    },
  },
  'reminder-the-day-before': {
    async work(o) {
      const at = async (time: string, zone?: string) => {
        const { local, hours, hours_local, remind_utc } = await o.run({ at: time, ...(zone && { zone }) })
        return [local, hours, hours_local, remind_utc]
      }
      // Over both changes of clocks, and for a time that does not exist.
      deepEqual(await at('2025-03-30T09:00'), ['09:00', 23, '08:00', '2025-03-29T08:00:00.000Z'])
      deepEqual(await at('2025-10-26T09:00'), ['09:00', 25, '10:00', '2025-10-25T07:00:00.000Z'])
      deepEqual(await at('2025-03-30T02:30'), ['03:30', 23, '02:30', '2025-03-29T02:30:00.000Z'])
      deepEqual(await at('2025-11-02T09:00', 'America/New_York'), [
        '09:00',
        25,
        '10:00',
        '2025-11-01T13:00:00.000Z',
      ])
      equal((await ended(o, { at: '27.11.2025 09:00' })).error.code, 'invalid_date')
    },
  },
  'confirm-appointments': {
    replies({ path }) {
      const id = path.split('/')[2]
      if (id === '2') return { status: 422, body: { error: 'gone' } }
      return id === '3' ? { status: 500, body: {} } : { body: { confirmation: `C${id}` } }
    },
    async work(o) {
      const appointments = ['Änn', 'Bea', 'Cé', 'Dan'].map((name, index) => ({
        id: String(index + 1),
        patient: { name, phone: '1' },
      }))
      deepEqual(await o.run({ appointments }), {
        ok: 2,
        failed: 2,
        ids: ['C1', 'C4'],
        list: '1. Bea: unexpected_status\n2. Cé: unexpected_status',
      })
      equal(o.calls('confirm/3').length, 2)
      equal((await o.run({ appointments: [{ id: '7' }] })).list, '1. unknown: placeholder_error')
      equal((await o.run()).list, 'all confirmed')
      deepEqual(
        o.mails().map(({ subject }) => subject),
        ['2 of 4 not confirmed', '1 of 1 not confirmed'],
      )
    },
  },
  'sum-of-a-collection': {
    async work(o) {
      const gifts = [
        { fund: 'Bildung', amount: '50.00', status: 'paid' },
        { fund: 'bildung', amount: '75.5' },
        { fund: 'Bildung', amount: 25 },
        { fund: 'Bildung', amount: null },
        { fund: 'Bildung' },
        { fund: 'Bildung', amount: '' },
        { fund: null, amount: '10.00' },
        { fund: 'Bildung', amount: '99', status: 'cancelled' },
      ]
      const { total, filter_total, totals, funds, average, largest } = await o.run({ gifts })
      deepEqual([total, filter_total, average, largest], ['160.50', '160.50', '40.13', '75.5'])
      deepEqual(
        [funds, totals],
        [
          ['Bildung', null],
          ['150.50', '10.00'],
        ],
      )
      const none = await o.run()
      deepEqual([none.total, none.best], [0, 'none'])
      for (const amount of ["1'000.00", '12,50'])
        equal((await ended(o, { gifts: [{ fund: 'a', amount }] })).error.code, 'not_a_number')
    },
  },
  'state-of-memberships': {
    async work(o) {
      const of = (...until: unknown[]) => ({
        today: '2026-11-27',
        members: until.map((one, index) => ({ name: `m${index}`, until: one })),
      })
      const { states, days } = await o.run(
        of('2026-11-26', '2026-11-27', '2026-12-27', '2026-12-28', null, ''),
      )
      deepEqual(states, ['expired', 'soon', 'soon', 'ok', 'none', 'none'])
      deepEqual(days, [-1, 0, 30, 31, null, null])
      match((await ended(o, of('27.12.2026'))).error.message, /is no time such as/)
    },
  },
  'treatment-estimate': {
    async work(o) {
      const { id: contact_id } = await o.create('contacts', { first_name: 'P' })
      const product = { currency: 'CHF' }
      await o.create('products', { ...product, name: 'Hygiene', sku: 'HYG', unit_price: '120.00' })
      await o.create('products', {
        ...product,
        name: 'Implantat',
        sku: 'IMP',
        unit_price: '2500.00',
        tax_percent: '8.1',
      })
      const plan = async (...positions: object[]) => {
        const { lines, names, amount } = await o.run({ contact_id, positions })
        return [lines, names, amount]
      }
      const both = [{ sku: 'HYG', quantity: 2 }, { sku: 'IMP', discount: 10 }, { sku: 'XXX' }]
      deepEqual(await plan(...both), [2, ['Hygiene', 'Implantat'], '2490.00'])
      deepEqual(await plan({ sku: 'HYG', quantity: '1.5' }), [1, ['Hygiene'], '180.00'])
      deepEqual(await plan({ sku: 'HYG', quantity: 0 }), [1, ['Hygiene'], '0.00'])
      deepEqual(await plan({ sku: null }), [0, [], null])
    },
  },
  'birthday-greetings': {
    fields: { contacts: { birthday: 'date' } },
    async work(o) {
      for (const [first_name, birthday] of [
        ['Heute', '1980-11-27'],
        ['Schalt', '2000-02-29'],
        ['Morgen', '1990-11-28'],
      ])
        await o.create('contacts', { first_name, tags: ['birthday-club'], custom_fields: { birthday } })
      const greeted = async (today: string) => (await o.run({ today })).greeted
      deepEqual(await greeted('2026-11-27'), [{ name: 'Heute', age: 46 }])
      deepEqual(await greeted('2027-02-28'), [])
      deepEqual(await greeted('2028-02-29'), [{ name: 'Schalt', age: 28 }])
    },
  },
  'no-show-follow-up': {
    fields: { contacts: { no_shows: 'number' } },
    async work(o) {
      const { id } = await o.create('contacts', { first_name: 'Zoë', last_name: 'Müller', tags: ['vip'] })
      const meet = (occurred_at: string, status: string, subject = 'Kontrolle') =>
        o.create('activities', {
          type: 'meeting',
          subject,
          occurred_at,
          status,
          associations: [{ object: 'contacts', id }],
        })
      const missed = async (occurred_at: string) => {
        const activity = await meet(occurred_at, 'planned')
        await o.records.update('activities', activity.id, { status: 'no_show' })
        return activity.id
      }
      // Saturday by the clocks of Zurich.
      await missed('2026-11-27T23:30:00Z')
      await o.runs(1)
      const friday = await missed('2026-11-27T10:00:00Z')
      await o.runs(2)
      await o.records.update('activities', friday, { subject: 'Other' })
      await meet('2026-11-26T10:00:00Z', 'no_show')
      await o.runs(3)
      await o.create('activities', { type: 'meeting', subject: 'of nobody', status: 'no_show' })
      deepEqual(
        (await o.runs(4)).map(({ outputs: { due, no_shows, priority } }) => [due, no_shows, priority]),
        [
          ['2026-11-30T08:00:00.000Z', 1, 'medium'],
          ['2026-11-30T08:00:00.000Z', 2, 'medium'],
          ['2026-11-27T08:00:00.000Z', 3, 'high'],
          [null, null, null],
        ],
      )
      deepEqual(await o.titles(), Array(3).fill('Call Zoë Müller: missed Kontrolle'))
      deepEqual((await o.records.get('contacts', id)).tags, ['vip', 'no-show'])
    },
  },
  'thanks-by-size': {
    fields: { contacts: { given_this_year: 'number', gifts_this_year: 'number' } },
    prepare: (o) => o.request('POST', '/pipelines', DONATIONS),
    async work(o) {
      const { id: ursula } = await o.create('contacts', { first_name: 'Ursula', email: o.address('ursula') })
      const { id: other } = await o.create('contacts', { first_name: 'Otto' })
      let count = 0
      const gift = async (contact_id: string, amount: string, closed_at = '2026-03-01T10:00:00Z') => {
        const deal = { name: 'Gift', pipeline: 'donations', stage: 'received', currency: 'CHF' }
        await o.create('deals', { ...deal, contact_id, amount, closed_at })
        count += 1
        const { outputs } = (await o.runs(count)).at(-1)!
        return [outputs.size, outputs.total, outputs.count, outputs.year]
      }
      deepEqual(await gift(ursula, '40.10'), ['small', '40.10', 1, '2026'])
      deepEqual(await gift(ursula, '59.90'), ['small', '100.00', 2, '2026'])
      deepEqual(await gift(ursula, '1000'), ['major', '1100.00', 3, '2026'])
      deepEqual(await gift(other, '100.00'), ['middle', '100.00', 1, '2026'])
      // Half past midnight on 1 January in Zurich.
      deepEqual(await gift(ursula, '5', '2025-12-31T23:30:00Z'), ['small', '1105.00', 4, '2026'])
      deepEqual(await o.fieldsOf('contacts', ursula), { given_this_year: 1105, gifts_this_year: 4 })
      deepEqual(
        o.mails().map(({ to, text }) => [to, text]),
        ['40.10 CHF; in 2026: 40.10', '59.90 CHF; in 2026: 100.00', "1'000.00 CHF; in 2026: 1'100.00"]
          .concat("5.00 CHF; in 2026: 1'105.00")
          .map((text) => [o.address('ursula'), text]),
      )
      deepEqual(await o.titles(), ['Letter to Otto', "Phone Ursula: 1'000.00 CHF"])
    },
  },
  'sync-of-patients': {
    fields: { contacts: { birthday: 'date' } },
    replies({ path }, count) {
      const query = new URL(path, 'https://example.com').searchParams
      const page = (patients: object[], next_cursor: string | null) => ({
        body: { patients, meta: { next_cursor } },
      })
      const patient = (id: number, email: string | null, born: string | null) => ({
        id,
        name: { first: `P${id}`, last: null },
        email,
        born,
      })
      if (query.has('updated_since')) return page([], null)
      if (!query.has('cursor'))
        return page([patient(41, 'a@example.org', '1980-11-27'), patient(42, null, null)], 'c 2&ü')
      if (query.get('cursor') !== 'c 2&ü') return page([], '')
      const corrected = count > 1 ? 'di@example.org' : 'no address'
      return page(
        [patient(43, '', '2000-02-29'), patient(44, corrected, null), patient(45, null, '')],
        'last',
      )
    },
    async work(o) {
      const sync = async () => {
        const { read, pages, created, failed, remembered } = await o.run()
        return [read, pages, created, failed, typeof remembered]
      }
      deepEqual(await sync(), [5, 3, 4, 1, 'object'])
      deepEqual(await sync(), [5, 3, 1, 0, 'string'])
      deepEqual(await sync(), [0, 1, 0, 0, 'string'])
      equal(o.calls('patients?updated_since=').length, 1)
      deepEqual(
        (await o.rows('contacts'))
          .map(({ external_id, email, custom_fields }) => [external_id, email, custom_fields.birthday])
          .sort(),
        [
          ['41', 'a@example.org', '1980-11-27'],
          ['42', null, undefined],
          ['43', null, '2000-02-29'],
          ['44', 'di@example.org', undefined],
          ['45', null, undefined],
        ],
      )
    },
  },
  'share-out-referrals': {
    async prepare(o, { db }) {
      for (const name of ['anna', 'otto']) {
        const id = await createMember(db, o.organizationId, name)
        await db
          .system('users')
          .where({ id })
          .update({ email: o.address(name) })
      }
    },
    async work(o) {
      const refer = (lead_source: string) =>
        o.create('contacts', { first_name: 'Ref', last_name: 'Uhl', lead_source, phone: '+41446681800' })
      await refer('Referral')
      for (const count of [1, 2, 3]) {
        await refer('referral')
        await o.runs(count)
      }
      const turns = ['anna', 'otto', 'anna'].map(o.address)
      deepEqual(
        (await o.runs(3)).map(({ outputs }) => outputs.to),
        turns,
      )
      deepEqual(
        o.mails().map(({ to, subject, text }) => [to, subject, text]),
        turns.map((to) => [to, 'New referral: Ref Uhl', 'no mail / +41446681800']),
      )
      const owners = (await o.rows('contacts')).map(({ owner_id }) => owner_id)
      deepEqual([owners[0], owners[1] === owners[3], owners[1] === owners[2]], [null, true, false])
    },
  },
  'estimate-and-answer': {
    async work(o) {
      const result = async (payload?: object) => {
        const run = await o.start({ email: o.address('ann'), ...(!payload && { wait: '1s' }) })
        if (payload) {
          await o.waits(run)
          await o.request('POST', `/runs/${run}/signal`, { name: 'answer', payload })
        }
        return (await o.completed(run)).result
      }
      const answers = [' JA ', 'nein', true, false, 'vielleicht']
      deepEqual(await Promise.all([...answers.map((text) => result({ text })), result()]), [
        'accepted',
        'declined',
        'accepted',
        'declined',
        'unclear: vielleicht',
        'no answer',
      ])
      const reminders = o.mails().filter(({ subject }) => subject === 'Reminder: your estimate')
      deepEqual([o.mails().length, reminders.length], [7, 1])
    },
  },
  'waiting-list': {
    replies: () => ({ body: { sent: true } }),
    async work(o) {
      const phones = ['079 123 45 67', '+41 44 668 18 00', '12', null, '0041 79 765 43 21', '079 123 45 68']
      const patients = phones.map((phone, index) => ({ name: 'ABCDEF'[index], ...(phone && { phone }) }))
      const outputs = await o.run({ patients })
      deepEqual(outputs.sent, ['A', 'B', 'E', 'F'])
      deepEqual(outputs.not_sent, ['C', 'D'])
      deepEqual(
        o
          .bodies('sms')
          .map(({ to }) => to)
          .sort(),
        ['+41446681800', '+41791234567', '+41791234568', '+41797654321'],
      )
      deepEqual(await o.run({ patients: [] }), { sent: [], not_sent: [], phones: [] })
    },
  },
  'patient-intake': {
    async prepare(o) {
      for (const field of [
        { name: 'insurer', type: 'select', options: ['CSS', 'Helsana', 'Swica'] },
        { name: 'allergies', type: 'multi_select', options: ['penicillin', 'latex', 'nuts'] },
        { name: 'smoker', type: 'boolean' },
        { name: 'weight', type: 'number' },
        { name: 'birthday', type: 'date' },
      ])
        await o.request('POST', '/custom-fields/contacts', field)
    },
    async work(o) {
      const form = (name: string, given: object) => ({
        form: { email: o.address(name), name: 'Größ', ...given },
      })
      const all = { insurer: 'css', allergies: 'penicillin;latex', smoker: 'no', weight: '82,5' }
      deepEqual(await o.run(form('all', { ...all, birthday: '1980-02-29' })), {
        created: true,
        note: 'Risk: penicillin, latex, smoker false',
        fields: {
          insurer: 'CSS',
          allergies: ['penicillin', 'latex'],
          smoker: false,
          weight: 82.5,
          birthday: '1980-02-29',
        },
      })
      const empty = { insurer: '', allergies: '', weight: '', birthday: '' }
      deepEqual((await o.run(form('empty', { ...empty, smoker: 'no' }))).fields, { smoker: false })
      deepEqual(await o.run(form('none', {})), { created: true, note: null, fields: {} })
      const refused = await ended(o, form('foo', { insurer: 'Foo' }))
      equal(refused.status, 'failed')
      match(refused.error.message, /^Not saved: custom_fields\.insurer/)
    },
  },
  'pledge-promised': {
    prepare: (o) => o.request('POST', '/pipelines', PLEDGES),
    async work(o) {
      const move = (id: string, stage: string) => o.records.update('deals', id, { stage })
      const promise = async () => {
        const deal = { name: 'Pledge', pipeline: 'pledges', stage: 'asked', amount: '500' }
        const { id } = await o.create('deals', deal)
        await move(id, 'promised')
        return id
      }
      const [paid, broken] = [await promise(), await promise()]
      await until(async () => (await o.rows('run_waits')).length === 2)
      await move(paid, 'paid')
      await move(broken, 'broken')
      await o.runs(2)
      await o.change('timeout: 1d', 'timeout: 1s')
      await promise()
      const runs = (await o.runs(3)).map(({ status, outputs }) => [
        status,
        outputs?.from,
        outputs?.note,
        outputs?.stage,
      ])
      deepEqual(runs, [
        ['completed', 'asked', 'Received 500.00 (promised 500.00)', null],
        ['cancelled', undefined, undefined, undefined],
        ['completed', 'asked', null, 'reminded'],
      ])
      deepEqual(await o.titles(), ['Pledge Pledge is open'])
    },
  },
  'one-follow-up-per-patient': {
    async work(o) {
      const patient = o.address('kim')
      const { id } = await o.create('contacts', { email: patient })
      const first = await o.start({ patient })
      await o.waitsUntil(first)
      equal((await ended(o, { patient: patient.toUpperCase() })).status, 'skipped')
      deepEqual(await o.run({ patient: o.address('other'), pause: '1ms' }), { n: 1 })
      await o.records.update('contacts', id, { do_not_contact: true })
      equal((await o.ended(first)).status, 'cancelled')
      deepEqual(await o.run({ patient, pause: '1ms' }), { n: 2 })
      deepEqual(
        o.mails().map(({ to }) => to),
        [o.address('other'), patient],
      )
    },
  },
  'weekly-report': {
    timezone: 'Europe/Zurich',
    prepare: (o) => o.request('POST', '/pipelines', DONATIONS),
    async work(o) {
      const to = o.address('office')
      match((await ended(o, { to })).error.message, /it divides by zero/)
      const gift = (amount: string, source: string | null, currency = 'CHF') =>
        o.create('deals', {
          name: 'Gift',
          pipeline: 'donations',
          stage: 'received',
          source,
          amount,
          currency,
        })
      await gift('1000', null)
      await gift('40.10', 'flyer')
      await gift('59.90', 'flyer')
      const text = "unknown: 1 gifts, 1'000.00\nflyer: 2 gifts, 100.00"
      deepEqual(await o.run({ to }), { total: '1100.00', analytics: '1100.00', text, count: 3 })
      const [mail] = o.mails()
      equal(mail!.subject, "Gifts of the week: 1'100.00")
      match(mail!.text, /Analytics: 1100\.00\s+Average: 366\.67$/)
      // Amounts of two currencies have no sum.
      await gift('1000', null, 'EUR')
      equal((await ended(o, { to })).error.code, 'mixed_currencies')
    },
  },
  'receipts-of-a-year': {
    timezone: 'Europe/Zurich',
    prepare: (o) => o.request('POST', '/pipelines', DONATIONS),
    async work(o) {
      const donor = async (first_name: string) =>
        (await o.create('contacts', { first_name, email: o.address(first_name.toLowerCase()) })).id
      const gift = (contact_id: string | null, amount: string, closed_at: string) =>
        o.create('deals', {
          name: 'Gift',
          pipeline: 'donations',
          stage: 'received',
          currency: 'CHF',
          contact_id,
          amount,
          closed_at,
        })
      const [early, late, little, twice] = [
        await donor('Early'),
        await donor('Late'),
        await donor('Little'),
        await donor('Twice'),
      ]
      // By the clocks of Zurich the year begins and ends an hour before that of UTC.
      await gift(early, '1234.5', '2024-12-31T23:30:00Z')
      await gift(early, '1', '2024-12-31T22:30:00Z')
      await gift(late, '60', '2025-12-31T21:00:00Z')
      await gift(late, '1', '2025-12-31T23:30:00Z')
      await gift(little, '49.99', '2025-06-01T10:00:00Z')
      await gift(twice, '25', '2025-06-01T10:00:00Z')
      await gift(twice, '25.00', '2025-07-01T10:00:00Z')
      await gift(null, '500', '2025-07-01T10:00:00Z')
      deepEqual(await o.run({ year: 2025 }), {
        gifts: 6,
        receipts: ["Early: 1'234.50 (1)", 'Late: 60.00 (1)', 'Twice: 50.00 (2)'],
      })
      deepEqual(await o.run({ year: 1999 }), { gifts: 0, receipts: [] })
      deepEqual(
        o
          .mails()
          .map(({ to }) => to)
          .sort(),
        ['early', 'late', 'twice'].map(o.address),
      )
    },
  },
}

describeJobs('the jobs of a dental practice and a charity', 'clinic', jobs, 23)
