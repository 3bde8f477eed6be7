import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { changePlan } from '../../../db/access/plan-changes.ts'
import { getUsage } from '../../../db/access/usage.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { FILES } from '../../../workflows/shared/limits.ts'
import { createKey, startApi, type TestApi } from '../../support/api.ts'
import { createOrganization, filesOf, testActor } from '../../support/database.ts'
import { type S3, startS3 } from '../../support/s3.ts'
import { until } from '../../support/until.ts'
import { withApi } from '../../support/with-api.ts'

const PDF = 'application/pdf'

describe('files of records', () => {
  const suite = withApi()
  let record: string
  beforeEach(async () => {
    const { body } = await suite.api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    record = body.id
  })

  const path = (name = 'invoice.pdf') =>
    `/v1/objects/contacts/${record}/files?name=${encodeURIComponent(name)}`
  const upload = (
    bytes: Uint8Array | string,
    { name = 'invoice.pdf', type = PDF, key = suite.api.key } = {},
  ) => suite.api.request('POST', path(name), { body: bytes, headers: { 'Content-Type': type }, key })
  const list = async () => (await suite.api.request('GET', `/v1/objects/contacts/${record}/files`)).body.data
  const download = (id: string, key = suite.api.key) =>
    fetch(`${suite.api.url}/v1/files/${id}`, { headers: { Authorization: `Bearer ${key}` } })
  const rows = () => suite.db.system('files').where({ organization_id: suite.api.organizationId })
  /** Everything below the folder of contents. */
  const contents = () =>
    existsSync(filesOf(suite.db))
      ? readdirSync(filesOf(suite.db), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name))
      : []

  for (const size of [1, 65_535, 65_536, 65_537, 300_000])
    it(`gives back ${size} bytes as they were sent`, async () => {
      const bytes = randomBytes(size)
      const { status, body } = await upload(bytes)
      equal(status, 201)
      const { id, created_at, created_by, ...rest } = body
      deepEqual(rest, {
        object: 'file',
        name: 'invoice.pdf',
        content_type: PDF,
        size,
        sha256: createHash('sha256').update(bytes).digest('hex'),
        entity: 'contacts',
        record_id: record,
        origin: 'upload',
        run_id: null,
      })
      deepEqual(await list(), [body])
      const answer = await download(id)
      equal(answer.status, 200)
      ok(Buffer.from(await answer.arrayBuffer()).equals(bytes))
      equal(answer.headers.get('content-length'), String(size))
      equal(answer.headers.get('content-type'), PDF)
      equal(answer.headers.get('content-disposition'), 'attachment; filename="invoice.pdf"')
      equal(answer.headers.get('x-content-type-options'), 'nosniff')
      match(answer.headers.get('content-security-policy')!, /sandbox/)
    })

  it('keeps no readable content on the disk', async () => {
    const { body } = await upload('a confidential sentence, which no disk may show')
    const stored = contents().filter((file) => file.endsWith(body.id))
    equal(stored.length, 1)
    ok(!readFileSync(stored[0]!).includes('confidential'))
  })

  it('keeps a content under one name once, however often it is uploaded', async () => {
    const [first, second] = await Promise.all([upload('the same'), upload('the same')])
    equal(first.status, 201)
    equal(second.body.id, first.body.id)
    const other = await upload('the same', { name: 'other.pdf' })
    equal((await list()).length, 2)
    ok(other.body.id !== first.body.id)
  })

  it('shows a name with any letters to old and new clients', async () => {
    const { body } = await upload('x', { name: 'Rechnung "März" 100%.pdf' })
    const answer = await download(body.id)
    equal(
      answer.headers.get('content-disposition'),
      `attachment; filename="Rechnung _M_rz_ 100_.pdf"; filename*=UTF-8''Rechnung%20%22M%C3%A4rz%22%20100%25.pdf`,
    )
  })

  for (const name of [
    '',
    '../x.pdf',
    'a\\b.pdf',
    'a\nb.pdf',
    ' x.pdf',
    '..',
    'invoice\u202efdp.exe',
    'x'.repeat(256),
  ])
    it(`refuses the name ${JSON.stringify(name.slice(0, 20))}`, async () => {
      const { status, body } = await upload('x', { name })
      equal(status, 422)
      deepEqual(body.detail[0].loc, ['query', 'name'])
    })

  it('refuses an empty file, a form, and a record that is not there', async () => {
    const empty = await upload(new Uint8Array())
    equal(empty.status, 422)
    match(empty.body.error.message, /the file is empty/)
    for (const type of ['multipart/form-data; boundary=x', 'application/x-www-form-urlencoded'])
      equal((await upload('x', { type })).status, 415)
    const gone = await suite.api.request(
      'POST',
      '/v1/objects/contacts/019a0000-0000-7000-8000-000000000001/files?name=x.pdf',
      { body: 'x', headers: { 'Content-Type': PDF } },
    )
    equal(gone.status, 404)
    deepEqual(await list(), [])
    equal(await rows().where({ status: 'uploading' }).first(), undefined)
  })

  it('leaves nothing of an upload that is aborted', async () => {
    const before = contents().length
    const sent = httpRequest(suite.api.url + path('aborted.bin'), {
      method: 'POST',
      headers: { Authorization: `Bearer ${suite.api.key}`, 'Content-Type': PDF, 'Content-Length': 1_000_000 },
    })
    sent.on('error', () => {})
    sent.write(randomBytes(200_000))
    for (;;) if (await rows().where({ name: 'aborted.bin' }).first()) break
    sent.destroy()
    for (;;) if (!(await rows().where({ name: 'aborted.bin' }).first())) break
    deepEqual(await list(), [])
    equal(contents().length, before)
    ok(await suite.db.system('deleted_files').first(), 'the worker looks again for what may be left')
  })

  it('refuses what is larger than any plan allows before it reads it', async () => {
    const answer = await new Promise<number>((resolve, reject) => {
      const sent = httpRequest(suite.api.url + path(), {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${suite.api.key}`,
          'Content-Type': PDF,
          'Content-Length': FILES.bytes + 1,
        },
      })
      sent.on('response', ({ statusCode }) => resolve(statusCode!)).on('error', reject)
      sent.flushHeaders()
    })
    equal(answer, 413)
  })

  it('deletes a file', async () => {
    const { body } = await upload('x')
    equal((await suite.api.request('DELETE', `/v1/files/${body.id}`)).status, 200)
    equal((await download(body.id)).status, 404)
    equal((await suite.api.request('DELETE', `/v1/files/${body.id}`)).status, 404)
    deepEqual(await list(), [])
  })

  it('does not show the file of a deleted record, and shows it again with the record', async () => {
    const { body } = await upload('x')
    await suite.api.request('DELETE', `/v1/objects/contacts/${record}`)
    const { status, body: gone } = await suite.api.request('GET', `/v1/files/${body.id}`)
    equal(status, 404)
    equal(gone.error.message, 'file not found')
    await suite.api.request('POST', `/v1/objects/contacts/${record}/restore`)
    equal((await download(body.id)).status, 200)
  })

  it('moves the files of a duplicate', async () => {
    const { body: winner } = await suite.api.request('POST', '/v1/objects/contacts', {
      body: { first_name: 'A' },
    })
    const { body } = await upload('x')
    await suite.api.request('POST', `/v1/objects/contacts/${winner.id}/merge`, { body: { from: record } })
    record = winner.id
    deepEqual(
      (await list()).map(({ id }: { id: string }) => id),
      [body.id],
    )
  })

  it('asks for the scopes of the kind, and hides the files of other organizations', async () => {
    const { body } = await upload('x')
    const own = suite.api.organizationId
    const { key: reader } = await createKey(suite.db, own, { scopes: ['contacts:read'] })
    const { key: other } = await createKey(suite.db, own, { scopes: ['deals:write'] })
    const { key: foreign } = await createKey(suite.db, await createOrganization(suite.db))
    equal((await download(body.id, reader)).status, 200)
    equal((await download(body.id, other)).status, 403)
    equal((await download(body.id, foreign)).status, 404)
    equal((await upload('y', { key: reader })).status, 403)
    for (const [key, status] of [
      [reader, 403],
      [other, 403],
      [foreign, 404],
    ] as const)
      equal((await suite.api.request('DELETE', `/v1/files/${body.id}`, { key })).status, status)
  })
})

describe('the limits of files', () => {
  const suite = withApi()
  const limited = async (limits: object, bytes: Uint8Array, { chunked = false } = {}) => {
    const organizationId = await createOrganization(suite.db, { limits })
    const { key } = await createKey(suite.db, organizationId)
    const { body } = await suite.api.request('POST', '/v1/objects/contacts', {
      body: { first_name: 'Ada' },
      key,
    })
    const send = async (name: string) => {
      const answer = await fetch(`${suite.api.url}/v1/objects/contacts/${body.id}/files?name=${name}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': PDF },
        body: chunked ? new Blob([new Uint8Array(bytes)]).stream() : bytes,
        ...(chunked && { duplex: 'half' }),
      } as RequestInit)
      return {
        status: answer.status,
        body: (await answer.json()) as { error: { type: string; message: string } },
      }
    }
    const tenant = <T>(work: (tx: Tenant) => Promise<T>) => suite.db.tenant(organizationId, testActor, work)
    const used = async () =>
      Number(
        (await suite.db.system('files').where({ organization_id: organizationId }).sum('size').first())?.sum,
      )
    const url = `${suite.api.url}/v1/objects/contacts/${body.id}/files?name=`
    return { send, used, tenant, url, key }
  }

  for (const chunked of [false, true])
    it(`refuses a file above the largest of the plan (${chunked ? 'without' : 'with'} its length)`, async () => {
      const { send, used } = await limited({ largest_file: 100_000 }, randomBytes(100_001), { chunked })
      const { status, body } = await send('x.pdf')
      equal(status, 413)
      match(body.error.message, /larger than 100000 bytes/)
      equal(await used(), 0)
    })

  for (const chunked of [false, true])
    it(`refuses what exceeds the bytes of the plan (${chunked ? 'without' : 'with'} its length)`, async () => {
      const { send, used } = await limited({ file_bytes: 250_000 }, randomBytes(100_000), { chunked })
      equal((await send('1.pdf')).status, 201)
      equal((await send('2.pdf')).status, 201)
      const { status, body } = await send('3.pdf')
      equal(status, 429)
      equal(body.error.type, 'quota_exceeded')
      match(body.error.message, /250000 bytes of files, of which 50000 are left/)
      equal(await used(), 200_000)
    })

  it('are shown in the usage, where a small file counts as a block, and a plan that allows less is refused', async () => {
    const { send, tenant } = await limited({}, randomBytes(10))
    await send('1.pdf')
    const { limits } = await tenant(getUsage)
    deepEqual(limits.file_bytes, { used: 4_096, limit: null })
    deepEqual(limits.largest_file, { used: null, limit: FILES.bytes })
    await tenant((tx) =>
      tx
        .trx('files')
        .where({ organization_id: tx.organizationId })
        .update({ size: 2 ** 30 }),
    )
    await rejects(
      tenant((tx) => changePlan(tx, 'free')),
      /1073741824 bytes of files \(at most 104857600\)/,
    )
    equal(await tenant((tx) => changePlan(tx, 'professional')), 'enterprise')
  })

  it('do not count what a killed process reserved six minutes ago', async () => {
    const { send, tenant } = await limited({ file_bytes: 250_000 }, randomBytes(100_000))
    await send('1.pdf')
    await tenant((tx) =>
      tx
        .trx('files')
        .where({ organization_id: tx.organizationId })
        .update({
          status: 'uploading',
          size: 250_000,
          created_at: new Date(Date.now() - 360_000),
        }),
    )
    equal((await send('2.pdf')).status, 201)
  })

  it('reserves for a file of unknown length about what was received, and says when only that is in the way', async () => {
    const limit = 5_000_000
    const { send, tenant, url, key } = await limited(
      { file_bytes: limit, largest_file: limit },
      randomBytes(2_000_000),
    )
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const open = fetch(`${url}slow.pdf`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': PDF },
      body: readable,
      duplex: 'half',
    } as RequestInit)
    const writer = writable.getWriter()
    const reserved = () =>
      tenant(async (tx) => {
        const own = tx.trx('files').where({ organization_id: tx.organizationId, status: 'uploading' })
        return Number((await own.first('size'))?.size ?? 0)
      })
    const write = async (bytes: number) => {
      for (let sent = 0; sent < bytes; sent += 100_000) await writer.write(randomBytes(100_000))
    }
    await write(100_000)
    await until(async () => (await reserved()) === 1_048_576)
    equal((await send('1.pdf')).status, 201)
    await write(1_200_000)
    await until(async () => (await reserved()) > 1_200_000)
    ok((await reserved()) < 3_000_000)
    const refused = await send('2.pdf')
    equal(refused.status, 503)
    match(refused.body.error.message, /reserved for files that are being received/)
    await writer.close()
    equal((await open).status, 201)
    equal((await send('3.pdf')).status, 429)
  })

  it('lets uploads at the same time not exceed the plan together', async () => {
    const { send, used } = await limited({ file_bytes: 250_000 }, randomBytes(100_000))
    const answers = await Promise.all(['1', '2', '3', '4', '5'].map(send))
    equal(answers.filter(({ status }) => status === 201).length, 2)
    equal(await used(), 200_000)
  })
})

describe('files in S3', () => {
  const suite = withApi()
  let s3: S3
  let api: TestApi
  before(async () => {
    s3 = await startS3()
    api = await startApi(suite.db, {}, undefined, await s3.storage())
  })
  after(() => api.close())

  it('gives its connections back, also if nobody reads a download to its end', async () => {
    const { body } = await api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    const bytes = randomBytes(3_000_000)
    const upload = await api.request('POST', `/v1/objects/contacts/${body.id}/files?name=x.bin`, {
      body: bytes,
      headers: { 'Content-Type': PDF },
    })
    const url = `${api.url}/v1/files/${upload.body.id}`
    const headers = { Authorization: `Bearer ${api.key}` }
    // More than the client of S3 has connections.
    for (let i = 0; i < 60; i++) {
      equal((await fetch(url, { method: 'HEAD', headers })).status, 200)
      const abort = new AbortController()
      const { status } = await fetch(url, { headers, signal: abort.signal })
      equal(status, 200)
      abort.abort()
    }
    ok(Buffer.from(await (await fetch(url, { headers })).arrayBuffer()).equals(bytes))
  })

  it('are answered with 503 while it is away, and what was accepted before is there', async () => {
    const { body } = await api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    const files = `/v1/objects/contacts/${body.id}/files`
    const upload = () =>
      api.request('POST', `${files}?name=x.txt`, { body: 'x', headers: { 'Content-Type': 'text/plain' } })
    const { body: file } = await upload()
    equal((await api.request('GET', `/v1/files/${file.id}`)).body, 'x')
    await s3.stop()
    for (const answer of [await upload(), await api.request('GET', `/v1/files/${file.id}`)]) {
      equal(answer.status, 503)
      equal(answer.body.error.message, 'the storage of files is not available: try again')
      equal(answer.headers.get('retry-after'), '5')
    }
    deepEqual((await api.request('GET', files)).body.data, [file])
    equal(await suite.db.system('files').where({ status: 'uploading' }).first(), undefined)
  })

  it('need a storage: its settings are named', async () => {
    const { body } = await suite.api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    const none = await startApi(suite.db, {}, undefined, null)
    const answer = await none.request('POST', `/v1/objects/contacts/${body.id}/files?name=x.txt`, {
      body: 'x',
      headers: { 'Content-Type': 'text/plain' },
      key: suite.api.key,
    })
    await none.close()
    equal(answer.status, 409)
    match(answer.body.error.message, /neither FILES_DIR nor FILES_S3_BUCKET/)
  })
})
