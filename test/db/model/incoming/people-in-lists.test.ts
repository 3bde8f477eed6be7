import { deepEqual, equal, match } from 'node:assert/strict'
import { itemsOf } from '../../../../db/model/incoming/batch.ts'
import { mapPayload } from '../../../../db/model/incoming/mapping/map.ts'
import { parseText } from '../../../../db/model/incoming/parse-body.ts'
import type { TargetKind } from '../../../../db/model/incoming/types.ts'

const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }
const bob = { name: 'Bob Stone', email: 'bob@example.com' }
const isAda = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }

const settings = (kind: TargetKind) => ({ field_mapping: { mode: 'automatic' }, kind }) as const
const read = (payload: object, headers = {}) => mapPayload(payload, settings('contacts'), headers)
const itemsIn = (payload: object, kind: TargetKind = 'contacts') => itemsOf(payload as never, settings(kind))

describe('a list of people in a payload', () => {
  it('is none of them, with a warning that names the paths to choose from', () => {
    for (const role of [
      'attendees',
      'invitees',
      'participants',
      'guests',
      'customers',
      'contacts',
      'signers',
    ])
      for (const payload of [
        { event: 'meeting', title: 'Mill', [role]: [ada, bob] },
        { payload: { id: 7, [role]: [ada, bob] } },
        { booking: { [role]: [bob, ada], host: { name: 'Grace', email: 'grace@host.example' } } },
      ]) {
        const { fields, warnings } = read(payload)
        deepEqual(fields, {}, `${role} ${JSON.stringify(fields)}`)
        match(warnings?.join() ?? '', /\[0\]\.email and .*\[1\]\.email name different people: none was used/)
      }
  })

  it('with one person, or the same one twice, is that person', () => {
    for (const attendees of [[ada], [ada, ada], [ada, { ...ada, email: 'ADA@example.com' }]])
      deepEqual(read({ event: 'x', attendees }).fields, isAda)
  })

  it('decides nothing where another value says who it is', () => {
    const { fields } = read({ customer: ada, attendees: [ada, bob] })
    // The customer is one of the two: it is not known which of them the record is about.
    deepEqual(fields, {})
  })

  it('of addresses of one person is that person', () => {
    const emails = [{ value: 'ada@example.com' }, { value: 'countess@example.com' }]
    deepEqual(read({ contact: { first_name: 'Ada', last_name: 'Lovelace', emails } }).fields, isAda)
  })

  it('takes the booker of Cal.com, of several attendees', () => {
    const responses = {
      name: { label: 'your_name', value: 'Ada Lovelace' },
      email: { label: 'email_address', value: 'ada@example.com' },
      guests: { label: 'additional_guests', value: ['bob@example.com'] },
    }
    const attendees = [
      { ...ada, timeZone: 'Europe/London' },
      { ...bob, timeZone: 'Asia/Tokyo' },
    ]
    const organizer = { name: 'Grace Hopper', email: 'grace@host.example' }
    const booking = { title: 'Mill', organizer, attendees, status: 'ACCEPTED' }
    for (const payload of [booking, { ...booking, responses }])
      deepEqual(read({ triggerEvent: 'BOOKING_CREATED', createdAt: '2026-03-02', payload }).fields, {
        ...isAda,
        timezone: 'Europe/London',
      })
  })
})

describe('an envelope around records', () => {
  it('is a batch, whatever the name of its list, if each item has an address of a person', () => {
    for (const name of [
      'customers',
      'users',
      'results',
      'events',
      'data',
      'records',
      'items',
      'people',
      'leads',
    ]) {
      equal(itemsIn({ [name]: [ada, bob] })?.length, 2, name)
      equal(itemsIn({ object: 'list', has_more: false, [name]: [ada, bob] })?.length, 2, name)
      equal(itemsIn({ data: { [name]: [ada, bob] } })?.length, 2, `data.${name}`)
    }
    const [first] = itemsIn({ object: 'list', results: [ada, bob] })!
    deepEqual(read(first!).fields, isAda)
  })

  it('is none where the list is of things, of people of one thing, or not all of people', () => {
    const items = [{ name: 'Mill' }, { name: 'Loom' }]
    for (const payload of [
      { items, id: 7 },
      { email: 'ada@example.com', items },
      { results: [ada, { shoe_size: 9 }], total: 2 },
      { attendees: [ada, bob], title: 'Mill' },
      { signers: [ada, bob] },
      { answers: [ada, bob] },
      { users: [ada, bob], email: 'carl@example.com' },
      { users: [ada, bob], customers: [ada, bob] },
    ])
      equal(itemsIn(payload), undefined, JSON.stringify(payload))
  })

  it('in XML too', () => {
    const person = ({ name, email }: typeof ada) =>
      `<customer><name>${name}</name><email>${email}</email></customer>`
    const list = `<customers>${person(ada)}${person(bob)}</customers>`
    for (const xml of [list, `<response><status>ok</status>${list}</response>`]) {
      const items = itemsIn(parseText(xml, 'application/xml'))
      equal(items?.length, 2, xml)
      deepEqual(read(items![0]!).fields, isAda)
    }
    const order = `<order><email>ada@example.com</email><items><item><name>Mill</name></item><item><name>Loom</name></item></items></order>`
    equal(itemsIn(parseText(order, 'application/xml')), undefined)
  })
})
