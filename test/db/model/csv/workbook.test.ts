import assert from 'node:assert/strict'
import { inflateRawSync } from 'node:zlib'
import { XMLValidator } from 'fast-xml-parser'
import { workbook } from '../../../../db/model/csv/workbook.ts'

async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The files of an archive, by its central directory. */
function unzipped(zip: Buffer): Record<string, string> {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  const files: Record<string, string> = {}
  for (let at = zip.readUInt32LE(end + 16), left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [size, name, extra, comment] = [20, 28, 30, 32].map((offset) =>
      offset === 20 ? zip.readUInt32LE(at + offset) : zip.readUInt16LE(at + offset),
    ) as [number, number, number, number]
    const local = zip.readUInt32LE(at + 42)
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
    const content = zip.subarray(start, start + size)
    const isDeflated = zip.readUInt16LE(at + 10) === 8
    files[zip.toString('utf8', at + 46, at + 46 + name)] = String(
      isDeflated ? inflateRawSync(content) : content,
    )
    at += 46 + name + extra + comment
  }
  return files
}

const csv = (text: string) =>
  (async function* () {
    yield Buffer.from(text)
  })()

describe('a workbook', () => {
  it('has numbers as numbers, and all other cells as texts', async () => {
    const rows = "id,name,amount\r\n1,'=A & <B>\x01,1200.50\r\n2,,99999999999999.99\r\n"
    const types = new Map([['amount', 'money'] as const])
    const files = unzipped(await bytesOf(workbook(csv(rows), types)))
    assert.deepEqual(Object.keys(files).length, 5)
    for (const [name, xml] of Object.entries(files)) assert.equal(XMLValidator.validate(xml), true, name)
    const sheet = files['xl/worksheets/sheet1.xml']!
    assert.match(sheet, /=A &amp; &lt;B&gt;\ufffd<\/t>/)
    assert.match(sheet, /<c><v>1200\.50<\/v><\/c>/)
    // A double has too few digits for it.
    assert.match(sheet, />99999999999999\.99<\/t>/)
    assert.equal(sheet.match(/<row>/g)?.length, 3)
  })

  it('has the beginning of a text that no cell holds, without half a character', async () => {
    const files = unzipped(await bytesOf(workbook(csv(`body\r\n${'a'.repeat(32_766)}😀b\r\n`), new Map())))
    // Not `match`, whose message would have the whole sheet.
    assert.ok(/>a{32766}<\/t>/.test(files['xl/worksheets/sheet1.xml']!))
  })

  it('ends with the error of its rows, not as a whole file', async () => {
    const broken = (async function* () {
      yield Buffer.from('id\r\n')
      throw new Error('the file has expired')
    })()
    await assert.rejects(bytesOf(workbook(broken, new Map())), /the file has expired/)
  })
})
