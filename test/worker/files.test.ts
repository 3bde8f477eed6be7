import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createHttp } from '../../activities/http/client.ts'
import type { FileStorage } from '../../db/process/storage/storage.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { createOrganization, filesOf } from '../support/database.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { purgeAll } from '../support/purge.ts'
import { type S3, startS3 } from '../support/s3.ts'
import { withMails } from '../support/with-mails.ts'
import { historyOf, queueRun, untilRun } from '../support/worker.ts'

const http = createHttp({ allow: ['127.0.0.0/8'] })

describe('files in workflows', () => {
  const suite = withMails(undefined, () => ({ http: http.call }))
  let { db, api, smtp } = suite
  let server: HttpServer
  let answer: (response: ServerResponse) => void
  before(async () => {
    ;({ db, api, smtp } = suite)
    server = await startHttpServer((_, response) => answer(response))
  })
  after(async () => {
    await server.close()
    await http.close()
  })

  const PDF = randomBytes(2_500_000)
  const give = (bytes: Buffer, headers: Record<string, string> = {}, status = 200) => {
    answer = (response) => response.writeHead(status, headers).end(bytes)
  }
  beforeEach(() => give(PDF, { 'content-type': 'application/pdf' }))

  const fetched = (config: object = {}): NodeSpec => ({
    id: 'fetch',
    type: 'api_request',
    config: { url: `${server.url}/invoices/2026-01.pdf`, response: 'file', ...config },
  })
  const attach = (id: string): NodeSpec => ({
    id: 'attach',
    type: 'crm_manager',
    config: { operation: 'attach_file', entity: 'contacts', id, file: '{{ nodes.fetch.output.file }}' },
  })
  const mail = (attachments: unknown): NodeSpec => ({
    id: 'mail',
    type: 'send_email',
    config: { to: 'ada@example.com', subject: 'Invoice', text: 'Attached.', attachments },
  })
  const run = async (nodes: NodeSpec[], inputs: Record<string, unknown> = {}, more = {}) => {
    // One after the other.
    const edges = nodes.slice(1).map(({ id: to }, i) => ({ from: nodes[i]!.id, handle: 'success', to }))
    const id = await queueRun(db, api.organizationId, { nodes, edges, ...more }, inputs)
    const ended = await untilRun(db, id)
    const rows = await db.system('run_nodes').where({ run_id: id })
    const outputs = Object.fromEntries(rows.map((row) => [row.node_id, row.output]))
    const errors = Object.fromEntries(rows.map((row) => [row.node_id, row.error]))
    return { ...ended, outputs, errors }
  }
  const contact = async () => {
    const { body } = await api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    return body.id as string
  }
  const download = async (id: string) => {
    const response = await fetch(`${api.url}/v1/files/${id}`, {
      headers: { Authorization: `Bearer ${api.key}` },
    })
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
  }
  const attachmentIn = (text: string) => {
    const part = text.split(/\r\n--/).find((one) => /attachment/.test(one))!
    const [head = '', body = ''] = part.split('\r\n\r\n')
    return { head, bytes: Buffer.from(body, 'base64') }
  }

  it('fetches a PDF, attaches it to a record and mails it', async () => {
    const record = await contact()
    const { id, status, outputs } = await run([
      fetched(),
      attach(record),
      mail([
        '{{ nodes.fetch.output.file }}',
        { file_id: '{{ nodes.attach.output.file_id }}', name: 'Copy.pdf' },
      ]),
    ])
    equal(status, 'completed')
    const { file, ...rest } = outputs.fetch as { file: { file_id: string }; status: number }
    const { file_id } = file
    deepEqual(file, { file_id, name: '2026-01.pdf', content_type: 'application/pdf', size: PDF.length })
    deepEqual(Object.keys(rest), ['status', 'headers'])
    deepEqual(outputs.attach, file)
    const { body } = await api.request('GET', `/v1/objects/contacts/${record}/files`)
    equal(body.data[0].id, file_id)
    equal(body.data[0].run_id, id)
    ok((await download(file_id)).bytes.equals(PDF))
    const sent = smtp.received[0]!
    const { head, bytes } = attachmentIn(sent.text)
    match(head, /application\/pdf; name=2026-01\.pdf/)
    ok(bytes.equals(PDF))
    match(sent.text, /filename=Copy\.pdf/)
    const history = JSON.stringify(await historyOf(suite.worker.client, `run:${id}`))
    ok(history.length < 100_000, 'the history holds no content')
  })

  it('mails all files of a record', async () => {
    const record = await contact()
    for (const name of ['a.txt', 'b.txt'])
      await api.request('POST', `/v1/objects/contacts/${record}/files?name=${name}`, {
        body: `the text of ${name}`,
        headers: { 'Content-Type': 'text/plain' },
      })
    const { status } = await run([
      {
        id: 'files',
        type: 'crm_manager',
        config: { operation: 'list_files', entity: 'contacts', id: record },
      },
      mail('{{ nodes.files.output.data }}'),
    ])
    equal(status, 'completed')
    match(smtp.received[0]!.text, /filename=b\.txt.*filename=a\.txt/s)
  })

  it('takes the name of the response, decoded content, and what has no length', async () => {
    const text = Buffer.from('a,b\n1,2\n'.repeat(10_000))
    give(gzipSync(text), {
      'content-type': 'text/csv; charset=utf-8',
      'content-encoding': 'gzip',
      'content-disposition': `attachment; filename="x.csv"; filename*=UTF-8''..%2FM%C3%A4rz.csv`,
    })
    const { outputs } = await run([fetched()])
    const { file } = outputs.fetch as { file: { file_id: string; name: string } }
    deepEqual(
      { ...file, file_id: '' },
      { file_id: '', name: '.._März.csv', content_type: 'text/csv', size: text.length },
    )
    ok((await download(file.file_id)).bytes.equals(text))
  })

  it('ends with a clear error for an empty body, another status, and a body that is cut', async () => {
    give(Buffer.alloc(0))
    equal((await run([fetched()])).errors.fetch.code, 'validation_error')
    give(Buffer.from('not there'), { 'content-type': 'text/plain' }, 404)
    const { errors } = await run([fetched()])
    equal(errors.fetch.code, 'unexpected_status')
    deepEqual(errors.fetch.details, { status: 404, body: 'not there' })
    answer = (response) => {
      response.writeHead(200, { 'content-length': '100000' }).write(randomBytes(50_000))
      setTimeout(() => response.destroy(), 20)
    }
    const cut = await run([{ ...fetched(), retry: { max_attempts: 1 } }])
    equal(cut.errors.fetch.code, 'connection_failed')
    equal(await db.system('files').where({ status: 'uploading' }).first(), undefined)
  })

  it('names the file as the way to keep what is binary, or too large for a value', async () => {
    const { outputs } = await run([fetched({ response: 'body' })])
    const { body_error } = outputs.fetch as { body_error: { message: string } }
    match(body_error.message, /is not kept: `response: file` keeps it as a file$/)
    give(Buffer.alloc(5_000_000, 'a'), { 'content-type': 'text/plain' })
    const { errors } = await run([fetched({ response: 'body' })])
    match(errors.fetch.message, /larger than 4 MiB: `response: file` keeps it as a file$/)
  })

  it('keeps within the plan, and says what it has', async () => {
    const limit = (limits: object) =>
      db
        .system('organizations')
        .where({ id: api.organizationId })
        .update({ limits: JSON.stringify(limits) })
    await limit({ largest_file: 1_000 })
    const large = await run([fetched()])
    equal(large.errors.fetch.code, 'payload_too_large')
    match(large.errors.fetch.message, /larger than 1000 bytes/)
    await limit({ file_bytes: 1 })
    const full = await run([fetched()])
    equal(full.errors.fetch.code, 'quota_exceeded')
    match(full.errors.fetch.message, /1 bytes of files, of which 0 are left/)
    await limit({})
  })

  it('does not find the files of other organizations, and deleted ones', async () => {
    const { outputs } = await run([fetched()])
    const { file_id } = (outputs.fetch as { file: { file_id: string } }).file
    const foreign = await queueRun(db, await createOrganization(db), { nodes: [mail([{ file_id }])] })
    const ended = await untilRun(db, foreign)
    equal(ended.error?.code, 'not_found')
    equal((await api.request('DELETE', `/v1/files/${file_id}`)).status, 200)
    const { errors } = await run([mail([{ file_id }])])
    equal(errors.mail.code, 'not_found')
    match(errors.mail.message, /file not found: it may have been purged/)
    equal(smtp.received.length, 0)
  })

  it('sends no part of a damaged content', async () => {
    const { outputs } = await run([fetched()])
    const { file_id } = (outputs.fetch as { file: { file_id: string } }).file
    const [content] = readdirSync(filesOf(db), { recursive: true }).filter((path) =>
      String(path).endsWith(file_id),
    )
    const path = join(filesOf(db), String(content))
    const bytes = readFileSync(path)
    bytes[2_000_000]! ^= 1
    writeFileSync(path, bytes)
    await rejects(download(file_id), /terminated/)
    const { errors } = await run([mail([{ file_id }])])
    deepEqual(errors.mail, { code: 'internal_error', message: 'the content of the file is damaged' })
    equal(smtp.received.length, 0)
  })

  it('does not attach a file to a second record, and the same content only once', async () => {
    const [one, two] = [await contact(), await contact()]
    const first = await run([fetched(), attach(one)])
    const again = await run([fetched(), attach(one)])
    deepEqual(again.outputs.attach, first.outputs.attach)
    const { errors } = await run([
      {
        id: 'attach',
        type: 'crm_manager',
        config: { operation: 'attach_file', entity: 'contacts', id: two, file: first.outputs.attach },
      },
    ])
    equal(errors.attach.code, 'conflict')
    match(errors.attach.message, new RegExp(`belongs to the contact ${one}`))
  })

  it('tests a node that receives a file', async () => {
    const { body } = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'api_request', config: fetched().config, confirm: true },
      headers: { Prefer: 'wait=10' },
    })
    equal(body.status, 'completed')
    ok((await download(body.output.file.file_id)).bytes.equals(PDF))
    match(JSON.stringify(body.log), /kept as file/)
  })

  it('purges files with their run, unless a record has them, and then with the record', async () => {
    const record = await contact()
    const loose = await run([fetched()])
    const kept = await run([fetched(), attach(record)])
    const id = (of: typeof loose) => (of.outputs.fetch as { file: { file_id: string } }).file.file_id
    const exists = async (file: string) =>
      (await db.system('files').where({ id: file }).first()) !== undefined
    const hasContent = (file: string) =>
      existsSync(filesOf(db)) &&
      readdirSync(filesOf(db), { recursive: true }).some((path) => String(path).endsWith(file))
    const untilGone = async (file: string) => {
      for (;;) if (!(await db.system('deleted_files').where({ id: file }).first())) break
      equal(hasContent(file), false)
    }
    await purgeAll(db)
    ok(await exists(id(loose)))
    await db.system('runs').whereIn('id', [loose.id, kept.id]).delete()
    await purgeAll(db)
    equal(await exists(id(loose)), false)
    await untilGone(id(loose))
    ok(hasContent(id(kept)))
    equal((await download(id(kept))).status, 200)
    await api.request('DELETE', `/v1/objects/contacts/${record}`)
    await db
      .system('contacts')
      .where({ id: record })
      .update({ deleted_at: new Date('2020-01-01') })
    await purgeAll(db)
    equal(await exists(id(kept)), false)
    await untilGone(id(kept))
  })

  it('deletes what a killed process left, and the contents of a deleted organization', async () => {
    const organizationId = await createOrganization(db)
    const { outputs } = await run([fetched()])
    const { file_id } = (outputs.fetch as { file: { file_id: string } }).file
    const row = await db.system('files').where({ id: file_id }).first()
    await db
      .system('files')
      .insert({ ...row, created_by: row.created_by, organization_id: organizationId, run_id: null })
    // As if its process had died before the file was stored.
    await db
      .system('files')
      .where({ id: file_id, organization_id: api.organizationId })
      .update({ status: 'uploading', created_at: new Date(Date.now() - 13 * 3_600_000) })
    await purgeAll(db)
    equal(
      await db.system('files').where({ id: file_id, organization_id: api.organizationId }).first(),
      undefined,
    )
    await db.system('organizations').where({ id: organizationId }).delete()
    equal(await db.system('files').where({ id: file_id }).first(), undefined)
    for (;;) if (!(await db.system('deleted_files').where({ id: file_id }).first())) break
    ok(!readdirSync(filesOf(db), { recursive: true }).some((path) => String(path).endsWith(file_id)))
  })
})

describe('files in workflows, in S3', () => {
  let s3: S3
  let storage: FileStorage
  let server: HttpServer
  before(async () => {
    s3 = await startS3()
    storage = await s3.storage()
    server = await startHttpServer((_, response) => response.writeHead(200).end(randomBytes(300_000)))
  })
  const client = createHttp({ allow: ['127.0.0.0/8'] })
  const suite = withMails(undefined, () => ({ http: client.call, storage }))
  after(async () => {
    await server.close()
    await client.close()
  })
  const send: NodeSpec = {
    id: 'send',
    type: 'send_email',
    config: {
      to: 'ada@example.com',
      subject: 'Invoice',
      text: 'Attached.',
      attachments: [{ file_id: '{{ inputs.file }}' }],
    },
    retry: { max_attempts: 2, initial_interval: '10ms' },
  }
  const run = async (node: NodeSpec, inputs: Record<string, unknown> = {}) => {
    const { db, api } = suite
    const id = await queueRun(db, api.organizationId, { nodes: [node] }, inputs)
    const { status, error } = await untilRun(db, id)
    const row = await db.system('run_nodes').where({ run_id: id }).first()
    return { status, error, attempts: row.attempt, output: row.output }
  }

  it('are received and mailed; while it is away, the nodes are retried and say so', async () => {
    const fetched: NodeSpec = {
      id: 'fetch',
      type: 'api_request',
      config: { url: `${server.url}/a.bin`, response: 'file' },
      retry: { max_attempts: 2, initial_interval: '10ms' },
    }
    const { output } = await run(fetched)
    const inputs = { file: output.file.file_id }
    equal((await run(send, inputs)).status, 'completed')
    match(suite.smtp.received[0]!.text, /filename=a\.bin/)
    suite.smtp.behave()
    await s3.stop()
    for (const node of [fetched, send]) {
      const { status, error, attempts } = await run(node, inputs)
      deepEqual([status, error?.code, attempts], ['failed', 'unavailable', 2])
      match(error!.message, /the storage of files is not available/)
    }
    equal(suite.smtp.received.length, 0)
  })
})
