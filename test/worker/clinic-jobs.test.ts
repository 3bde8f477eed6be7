import { deepEqual, equal, match } from 'node:assert/strict'
import { describeJobs, type Job, type JobOffice } from '../support/jobs.ts'
import { chatReply } from '../support/with-offices.ts'

/** The jobs of a dental practice and of a charity. */

/** The end of a run by hand that may fail. */
const ended = async (o: JobOffice, inputs: object) => {
  const { status, outputs, error } = await o.ended(await o.start(inputs))
  return { status, outputs, error: error! }
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
}

describeJobs('the jobs of a dental practice and a charity', 'clinic', jobs, 12)
