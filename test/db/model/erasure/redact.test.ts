import { deepEqual, equal, ok } from 'node:assert/strict'
import { candidatePattern, finderOf, personOf } from '../../../../db/model/erasure/person.ts'
import { redactRow } from '../../../../db/model/erasure/redact.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const person = personOf(
  [ID],
  [
    { email: 'Erika@mail.example', first_name: 'Erika', last_name: 'Mustermann', phone: '+49 171 2345678' },
    { email: null, phone: '+493055512345', linkedin_url: 'https://www.linkedin.com/in/erika/' },
  ],
)
const finder = finderOf(person)
const redacted = (data: unknown, byName = false) => {
  const { row, found } = redactRow({ data }, finder, byName)
  return [row.data, found]
}
const isCandidate = (data: unknown) => new RegExp(candidatePattern(person), 'i').test(JSON.stringify(data))

describe('a person in stored values', () => {
  it('is found in each spelling of an address, a number or a profile, and in no other', () => {
    for (const text of [
      'to ERIKA@mail.example, please',
      'new-erika@mail.example',
      'e=erika%40mail.example&x=1',
      'call 0171 2345678!',
      'call +49 (0)171/234-5678',
      'call 0049 171 2345678',
      'tel=%2B491712345678',
      '030 / 555 12345',
      'see linkedin.com/in/erika',
    ]) {
      const [rest, found] = redacted(text)
      equal(found, 'key', text)
      ok(!/erika|2345678|12345/i.test(rest as string), String(rest))
      ok(isCandidate(text), text)
    }
    for (const text of [
      'verika@mail.example',
      'anna.erika@mail.example',
      'erika@mail.example.org',
      '99171234567811',
      '0172 2345678',
      '+1 49171 23456789',
    ])
      deepEqual(redacted(text), [text, undefined], text)
  })

  it('takes the other values of its object with it, and leaves other objects', () => {
    deepEqual(redacted([{ mail: 'erika@mail.example', city: 'Ulm', n: 7, ok: true }, { city: 'Bonn' }]), [
      [{ mail: '[erased]', city: '[erased]', n: '[erased]', ok: true }, { city: 'Bonn' }],
      'key',
    ])
    deepEqual(redacted({ phone: 491712345678, at: { city: 'Ulm' } }), [
      { phone: '[erased]', at: { city: '[erased]' } },
      'key',
    ])
    const deal = { object: 'deal', id: 'x', name: 'Flour', billing: 'erika@mail.example' }
    deepEqual(redacted(deal), [{ ...deal, billing: '[erased]' }, 'key'])
    const contact = { object: 'contact', id: ID, job_title: 'Baker' }
    deepEqual(redacted({ record: contact }), [{ record: { object: 'contact', id: ID } }, 'key'])
    deepEqual(redacted({ record: { object: 'contact', id: ID } }), [
      { record: { object: 'contact', id: ID } },
      undefined,
    ])
  })

  it('is found in JSON within a text, and in names of members', () => {
    deepEqual(redacted(JSON.stringify({ a: [{ to: 'erika@mail.example', b: 1 }] })), [
      '{"a":[{"to":"[erased]","b":"[erased]"}]}',
      'key',
    ])
    deepEqual(redacted({ 'erika@mail.example': { n: 1 } }), [{ '[erased]': { n: 1 } }, 'key'])
  })

  it('loses its name where something else is found, and else only if the name decides', () => {
    for (const named of ['Dear Erika Mustermann', 'Mustermann, Erika', 'n=erika+mustermann']) {
      deepEqual(redacted(named), [named, 'name'])
      ok(isCandidate(named))
      const [rest, found] = redacted(named, true)
      equal(found, 'key')
      ok(!/mustermann/i.test(rest as string), String(rest))
    }
    const parts = { object: 'task', first: 'Erika', last: 'Mustermann', city: 'Ulm' }
    deepEqual(redacted(parts), [parts, 'name'])
    deepEqual(redacted({ ...parts, body: 'for erika@mail.example' })[0], {
      object: 'task',
      first: '[erased]',
      last: '[erased]',
      city: 'Ulm',
      body: 'for [erased]',
    })
    deepEqual(redacted('Erika Musterfrau and Max Mustermann'), [
      'Erika Musterfrau and Max Mustermann',
      undefined,
    ])
  })
})
