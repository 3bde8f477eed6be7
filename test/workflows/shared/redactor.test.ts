import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SECRETS } from '../../../workflows/shared/limits.ts'
import { Redactor } from '../../../workflows/shared/redactor.ts'
import { MASK } from '../../../workflows/shared/secret-names.ts'

const SECRET = 'p@ss/w+rd "é" & <ü> %41\\n\'x\''
const base64 = (text: string) => Buffer.from(text).toString('base64')

const FORMS: Record<string, string> = {
  'as it is': SECRET,
  'in JSON': JSON.stringify(SECRET),
  'in JSON within JSON': JSON.stringify(JSON.stringify(SECRET)),
  'in JSON as PHP writes it': JSON.stringify(SECRET)
    .replaceAll('/', '\\/')
    .replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'in a query': encodeURIComponent(SECRET),
  'in a query, strictly': encodeURIComponent(SECRET).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16)}`,
  ),
  'in a query in a query': encodeURIComponent(encodeURIComponent(SECRET)),
  'in a form': new URLSearchParams({ a: SECRET }).toString(),
  'in HTML': SECRET.replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;'),
  'read as Latin-1': Buffer.from(SECRET).toString('latin1'),
  'in base64': base64(SECRET),
  'in base64url': Buffer.from(SECRET).toString('base64url'),
  'in base64 in a query': encodeURIComponent(base64(SECRET)),
  'as the password of Basic': base64(`user:${SECRET}`),
  'as the password of Basic, in Latin-1': Buffer.from(`user:${SECRET}`, 'latin1').toString('base64'),
  'as the user of Basic': base64(`${SECRET}:password`),
  'in base64 of a longer text': base64(`ab${SECRET}cd`),
  'in hexadecimal': Buffer.from(SECRET).toString('hex'),
  'in upper-case hexadecimal': Buffer.from(SECRET).toString('hex').toUpperCase(),
  'as decimal entities': entities(SECRET, (code) => `&#${code};`),
  'as hexadecimal entities': entities(SECRET, (code) => `&#x${code.toString(16)};`),
  'with some characters as entities': entities(SECRET, (code, at) =>
    at % 3 === 0 ? `&#0${code};` : String.fromCodePoint(code),
  ),
  'with named entities': SECRET.replaceAll('&', '&amp;').replaceAll('@', '&commat;').replaceAll('<', '&LT;'),
  'percent-encoded, every character': percent(SECRET),
  'percent-encoded, in small letters, twice': percent(percent(SECRET).toLowerCase()).toLowerCase(),
  'with some characters percent-encoded': SECRET.replaceAll('%', '%25')
    .replaceAll('s', '%73')
    .replaceAll('w', '%77'),
  'in base64 of base64': base64(base64(SECRET)),
  'in base64 of Basic': base64(`user:${base64(`ab${SECRET}`)}`),
  'in base32': base32(SECRET),
  'in base32 of a longer text, in small letters': base32(`abc${SECRET}de`).toLowerCase(),
}

function entities(text: string, write: (code: number, at: number) => string): string {
  return [...text].map((one, at) => write(one.codePointAt(0)!, at)).join('')
}
function percent(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`).join('')
}
function base32(text: string): string {
  const bits = [...Buffer.from(text)].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(five.padEnd(5, '0'), 2)])
    .join('')
}

describe('a redactor', () => {
  for (const [how, text] of Object.entries(FORMS))
    it(`masks a secret ${how}`, () => {
      const masked = new Redactor([SECRET]).text(`before ${text} after`)
      assert.match(masked, /^before .*\[masked\].* after$/)
      assert.ok(masked.length < 30 + MASK.length, masked)
      assert.ok(new Redactor([SECRET]).mayBeIn(Buffer.from(`before ${text} after`)))
    })

  it('masks any secret in any of the forms, whatever surrounds it', () => {
    const secret = fc
      .string({ unit: 'grapheme', minLength: SECRETS.least, maxLength: 40 })
      .filter((text) => text.trim().length >= SECRETS.least)
    const forms = fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => JSON.stringify(text).slice(1, -1),
      encodeURIComponent,
      (text) => new URLSearchParams({ a: text }).toString().slice(2),
      base64,
      (text) => Buffer.from(text).toString('base64url'),
      (text) => Buffer.from(text).toString('hex'),
    )
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), forms, (secret, before, after, form) => {
        const core = secret.trim()
        const whole = form(before + core + after)
        const masked = new Redactor([secret]).text(whole)
        assert.ok(masked.includes(MASK), `${whole} → ${masked}`)
        assert.ok(!masked.includes(form(core)) || MASK.includes(form(core)), masked)
      }),
      { numRuns: 40 },
    )
  })

  it('masks parts of twelve and more characters of a secret that a node reads', () => {
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U'
    const url = 'https://hooks.example.com/services/T024BE7LD/B01ABCDEFGH/aBcDeFgHiJkLmNoP'
    const redactor = new Redactor()
    for (const secret of [jwt, url]) redactor.add(secret, { parts: true })
    for (let start = 0; start + 12 <= jwt.length; start += 5)
      for (const length of [12, 13, 20, 40]) {
        const part = jwt.slice(start, start + length)
        if (part.length < 12) continue
        assert.equal(redactor.text(`is ${part}…`), `is ${MASK}…`, part)
        assert.equal(redactor.text(`${'é '.repeat(start)}${part}`), `${'é '.repeat(start)}${MASK}`)
      }
    assert.equal(redactor.text(base64(jwt.slice(0, 30))).includes(MASK), true)
    assert.equal(redactor.text(base64(jwt.slice(3, 40))).includes(MASK), true)
    assert.equal(redactor.text(jwt.slice(0, 11)), jwt.slice(0, 11))
    assert.equal(redactor.text('at /services/T024BE7LD/B01'), `at ${MASK}`)
    // A host is no secret, and other texts name it.
    assert.equal(redactor.text('GET https://hooks.example.com/v1'), 'GET https://hooks.example.com/v1')
    assert.equal(new Redactor([jwt]).text(`is ${jwt.slice(0, 20)}`), `is ${jwt.slice(0, 20)}`)
    assert.ok(redactor.mayBeIn(Buffer.from(`is ${jwt.slice(7, 30)}`)))
  })

  it('leaves everything else, and ignores secrets that are too short', () => {
    const redactor = new Redactor([SECRET, 'short', '  four    '])
    const value = { a: ['short', 1, null, true, { 'p@ss/w': 'four' }], b: new Date(0).toISOString() }
    assert.deepEqual(redactor.value(value), value)
    assert.ok(!new Redactor(['hunter2hunter2']).mayBeIn(Buffer.from(JSON.stringify(value))))
  })

  it('masks texts, names and numbers of a value', () => {
    const redactor = new Redactor(['12345678', 'hunter2hunter2'])
    assert.deepEqual(
      redactor.value({ a: [12345678, 9123456780, 1234567], 'x-hunter2hunter2': { b: 'is hunter2hunter2.' } }),
      {
        a: [MASK, MASK, 1234567],
        [`x-${MASK}`]: { b: `is ${MASK}.` },
      },
    )
  })

  it('masks each line of a secret of several lines, and the whole in JSON', () => {
    const key = `-----BEGIN KEY-----\n${'aB3/'.repeat(16)}\n${'cD4+'.repeat(16)}\n-----END KEY-----\n`
    const redactor = new Redactor([key])
    assert.equal(redactor.text(`(${'aB3/'.repeat(16)})`), `(${MASK})`)
    assert.equal(redactor.text(JSON.stringify({ key })), `{"key":"${MASK}\\n"}`)
    assert.equal(redactor.text(key.replaceAll('\n', '\r\n')), `${MASK}\r\n`)
  })

  it('masks the longest secret, and in time', () => {
    const longest = 'Az9+/ é"'.repeat(SECRETS.characters / 8)
    const redactor = new Redactor([longest])
    assert.equal(redactor.text(JSON.stringify(longest)), `"${MASK}"`)
    const all = new Redactor(Array.from({ length: SECRETS.count }, (_, i) => `secret-${i}-Az9+/`))
    for (const piece of ['a', '\\', '%25', '&#0', 'secret-', 'Az9+/', 'c2VjcmV0', '==']) {
      const text = piece.repeat((1024 * 1024) / piece.length)
      redactor.text(text)
      all.text(text)
    }
  })
})
