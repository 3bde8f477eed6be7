import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { readMultipart } from '../../../api/console/forms/multipart.ts'

const BOUNDARY = '----x'

const part = (name: string, content: string, filename?: string) =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${
    filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: text/csv`
  }\r\n\r\n${content}\r\n`

/** A request whose body comes in chunks of a size. */
const sent = (body: string, size: number) => {
  const bytes = Buffer.from(body)
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  )
  return Readable.from(chunks) as unknown as IncomingMessage
}

async function read(body: string, size = 7) {
  const { fields, file } = await readMultipart(sent(body, size), BOUNDARY)
  const chunks: Buffer[] = []
  for await (const chunk of file?.bytes ?? []) chunks.push(chunk)
  return {
    fields: fields.map(([name, value]) => [name, value.toString()]),
    name: file?.name,
    content: file && Buffer.concat(chunks).toString(),
  }
}

describe('forms with a file', () => {
  it('are read in chunks of any size', async () => {
    const csv = `name,x\r\nÄ,--${BOUNDARY}\r\n\r\n-`
    const body = `${part('a', '1\r\n2')}${part('b', '')}${part('file', csv, 'l%22.csv')}--${BOUNDARY}--\r\n`
    for (let size = 1; size < 90; size++)
      assert.deepEqual(await read(body, size), {
        fields: [
          ['a', '1\r\n2'],
          ['b', ''],
        ],
        name: 'l".csv',
        content: csv,
      })
  })

  it('have no file if none was chosen', async () => {
    const body = `${part('a', '1')}${part('file', '', '')}--${BOUNDARY}--\r\n`
    assert.deepEqual(await read(body), { fields: [['a', '1']], name: undefined, content: undefined })
  })

  it('are refused if they end too early, are no parts, or their fields are too long', async () => {
    for (const body of ['', 'x', part('a', '1'), part('file', 'x', 'x.csv').slice(0, -3)])
      await assert.rejects(read(body), { type: 'invalid_request' }, body)
    await assert.rejects(read(`--${BOUNDARY}\r\nX: y\r\n\r\n1\r\n--${BOUNDARY}--`), {
      type: 'invalid_request',
    })
    await assert.rejects(read(part('a', 'x'.repeat(300_000)), 60_000), { type: 'payload_too_large' })
  })

  it('are refused if their parts are many or their heads long, also with nothing in them', async () => {
    const tooLarge = { type: 'payload_too_large' }
    const parts = (count: number, name: string) =>
      Array.from({ length: count }, () => part(name, '')).join('')
    const end = `--${BOUNDARY}--\r\n`
    assert.equal((await read(parts(100, 'a') + end, 60_000)).fields.length, 100)
    await assert.rejects(read(parts(101, 'a') + end, 60_000), tooLarge)
    await assert.rejects(read(parts(40, 'x'.repeat(8_000)) + end, 60_000), tooLarge)
  })

  it('keep no more of the body than the values', async () => {
    const body = `${part('a', '1')}${part('file', 'x'.repeat(50_000), 'x.csv')}--${BOUNDARY}--\r\n`
    const { fields, file } = await readMultipart(sent(body, 60_000), BOUNDARY)
    assert.ok(fields[0]![1].buffer.byteLength <= Buffer.poolSize)
    await file!.discard()
  })

  it('are refused if their fields do not arrive in time', async () => {
    const request = new Readable({ read() {} })
    request.push(part('a', '1'))
    await assert.rejects(readMultipart(request as unknown as IncomingMessage, BOUNDARY, 20), {
      type: 'invalid_request',
      message: 'the fields of the form were not complete within the time limit',
    })
  })

  it('leave nothing unread that would block the connection', async () => {
    const request = sent(`${part('file', 'x'.repeat(500), 'x.csv')}--${BOUNDARY}--\r\n`, 50)
    const { file } = await readMultipart(request, BOUNDARY)
    await file!.discard()
    await new Promise((resolve) => (request as unknown as Readable).once('end', resolve))
  })
})
