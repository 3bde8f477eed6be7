import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Encoding, ToUtf8, WRONG_BYTE } from '../../../../db/model/csv/encoding.ts'

function decode(bytes: Buffer, size: number, chosen?: Encoding): { text: string; encoding: Encoding } {
  const decoder = new ToUtf8({ chosen })
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
        assert.equal(decode(Buffer.from(utf16).swap16(), size).text, text)
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

  const broken = (...lines: [utf8: string, other: string]) =>
    Buffer.concat([Buffer.from(`${lines[0]}Z`), Buffer.from([0xeb]), Buffer.from(lines[1])])

  it('marks bytes that are not UTF-8, so that only their rows are refused', () => {
    const file = broken('näme\r\nGenève\r\n', 'rich\r\n')
    const text = `näme\r\nGenève\r\nZ${WRONG_BYTE}rich\r\n`
    for (const size of [1, 3, 100]) {
      assert.deepEqual(decode(file, size), { text, encoding: 'utf-8' })
      assert.equal(decode(Buffer.concat([Buffer.from('\ufeff'), file]), size).text, text)
      assert.equal(decode(broken('\ufffd\n', 'rich'), size, 'utf-8').text, `\ufffd\nZ${WRONG_BYTE}rich`)
    }
    assert.equal(decode(Buffer.from([0x61, 0xc3]), 10, 'utf-8').text, `a${WRONG_BYTE}`)
  })

  it('is the chosen one, whatever the byte order mark says', () => {
    const file = Buffer.concat([Buffer.from('\ufeff'), broken('', 'rich')])
    assert.deepEqual(decode(file, 100, 'windows-1252'), { text: 'Zërich', encoding: 'windows-1252' })
  })

  it('is asked for where most lines are not in the encoding that the first letters show', () => {
    const latin = Buffer.from([0x5a, 0xeb, 0x0a])
    const utf8 = Buffer.from('Genève\n')
    assert.throws(() => decode(Buffer.concat([utf8, latin, latin]), 100), /1 lines are UTF-8 and 2 are not/)
    assert.throws(() => decode(Buffer.concat([latin, utf8, utf8]), 100), /2 lines are UTF-8 and 1 are not/)
    assert.equal(decode(Buffer.concat([utf8, latin, latin]), 100, 'windows-1252').encoding, 'windows-1252')
  })

  it('stops at what is not UTF-16, with the line', () => {
    const file = Buffer.from([0xff, 0xfe, 0x61, 0x00, 0x00, 0xd8, 0x61, 0])
    assert.throws(() => decode(file, 10), /line 1 is not UTF-16/)
  })
})

const HIGH: Record<string, number> = { '€': 0x80, '“': 0x93, '”': 0x94, Œ: 0x8c }
const toByte = (letter: string) => HIGH[letter] ?? letter.charCodeAt(0)
