import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Encoding, ToUtf8 } from '../../../../db/model/csv/encoding.ts'

function decode(bytes: Buffer, size: number, asked?: Encoding): { text: string; encoding: Encoding } {
  const decoder = new ToUtf8(asked)
  const parts = [decoder.write(bytes.subarray(0, Math.max(4, size)))]
  for (let at = Math.max(4, size); at < bytes.length; at += size)
    parts.push(decoder.write(bytes.subarray(at, at + size)))
  parts.push(decoder.end())
  return { text: Buffer.concat(parts).toString(), encoding: decoder.encoding! }
}

const size = fc.integer({ min: 1, max: 20 })
const letters = (unit: fc.Arbitrary<string>) => fc.string({ unit }).map((text) => `name${text}`)
const any = letters(fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })).filter(
  (one) => !/\p{Surrogate}/u.test(one),
)

describe('the encoding of a file', () => {
  it('is UTF-8 or UTF-16, by its byte order mark or as requested, in pieces of any size', () => {
    fc.assert(
      fc.property(any, size, (text, size) => {
        assert.equal(decode(Buffer.from(text), size, 'utf-8').text, text)
        assert.equal(decode(Buffer.from(`\ufeff${text}`), size).text, text)
        const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le')
        assert.equal(decode(utf16, size).text, text)
        assert.equal(decode(Buffer.from(utf16).swap16(), size, 'windows-1252').text, text)
      }),
    )
  })

  it('is detected: UTF-8 if valid, else Windows-1252', () => {
    const latin = letters(fc.constantFrom('a', ',', '\n', 'é', 'ü', 'ß', '€', '“', '”', 'Œ', 'ÿ'))
    fc.assert(
      fc.property(latin, size, (text, size) => {
        assert.deepEqual(decode(Buffer.from(text), size), { text, encoding: 'utf-8' })
        // Two adjacent letters may form a UTF-8 character; separated they never do.
        const apart = text.replace(/[^a,\nname]/g, '$& ')
        const read = decode(Buffer.from([...apart].map(toByte)), size)
        const encoding = apart === text ? 'utf-8' : 'windows-1252'
        assert.deepEqual(read, { text: apart, encoding })
      }),
    )
  })

  it('is never mixed: an invalid byte after UTF-8 letters is refused with its line', () => {
    const broken = Buffer.concat([
      Buffer.from('näme\r\nGenève\r\nZ'),
      Buffer.from([0xeb]),
      Buffer.from('rich\r\n'),
    ])
    assert.throws(() => decode(broken, 100), /^AppError: line 3 is not UTF-8$/)
    assert.throws(() => decode(Buffer.from([0x61, 0xc3]), 10, 'utf-8'), /line 1 is not UTF-8/)
    assert.throws(
      () => decode(Buffer.from([0xff, 0xfe, 0x61, 0x00, 0x00, 0xd8, 0x61, 0]), 10),
      /is not UTF-16/,
    )
  })
})

const HIGH: Record<string, number> = { '€': 0x80, '“': 0x93, '”': 0x94, Œ: 0x8c }
const toByte = (letter: string) => HIGH[letter] ?? letter.charCodeAt(0)
