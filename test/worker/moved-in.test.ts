import assert from 'node:assert/strict'
import { google } from '../fixtures/exports/google.ts'
import { hubspot } from '../fixtures/exports/hubspot.ts'
import { type MadeUpFile, ROWS, randomOf, toCsv } from '../fixtures/exports/made-up.ts'
import { pipedrive } from '../fixtures/exports/pipedrive.ts'
import { salesforce } from '../fixtures/exports/salesforce.ts'
import { createMember } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { withApiAndWorker } from '../support/with-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

const SEED = Number(process.env.EXPORTS_SEED ?? 29)
const prepared404 = '01890a5d-ac96-774b-bcce-b302099a8061'
const USERS = { 'Jane Doe': 'jane@owners.example', 'John Roe': 'john@owners.example' }

/**
 * A sales team moves in from other systems: their exports are imported through the API, with only what the proposal
 * leaves to a person, and every row is right or refused with its reason.
 */
describe('a migration from other systems', function () {
  this.timeout(300_000)
  const on = withApiAndWorker()
  const users: Record<string, string> = {}
  let imports: ReturnType<typeof importsOf>

  before(async () => {
    imports = importsOf(on.api)
    for (const [name, email] of Object.entries(USERS)) {
      users[name] = await createMember(on.db, on.api.organizationId, 'member')
      await on.db.system('users').where({ id: users[name] }).update({ name, email })
    }
    await on.db
      .system('organizations')
      .where({ id: on.api.organizationId })
      .update({ settings: JSON.stringify({ currency: 'EUR', timezone: 'Europe/Berlin', country: 'DE' }) })
  })

  /** All records of a kind by their key. */
  async function recordsBy(kind: string, key: string): Promise<Map<string, Json>> {
    const found = new Map<string, Json>()
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Json = await on.api.request(
        'GET',
        `/v1/objects/${kind}?limit=200${cursor && `&cursor=${cursor}`}`,
      )
      for (const record of page.body.data) if (record[key]) found.set(record[key], record)
      cursor = page.body.next_cursor
    }
    return found
  }

  const valueAt = (record: Json, path: string): unknown =>
    path.split('.').reduce((value: Json, name) => value?.[name], record)

  async function move({ entity, by, rows, expected, decisions = {} }: MadeUpFile): Promise<void> {
    const { body: prepared } = await imports.prepare({ entity, mode: 'upsert', by }, toCsv(rows))
    for (const { name, proposed, dropped } of prepared.file.columns)
      assert.ok(proposed !== null || dropped !== null, `${name} is lost without a word`)
    const refused = expected.filter((one) => 'refused' in one).length
    if (entity === 'deals') await tried(prepared.id, decisions, refused)
    const started = await imports.start(prepared.id, { ...decisions, dry_run: false })
    assert.equal(started.status, 200, JSON.stringify(started.body))
    const done = await imports.ended(prepared.id, 120)
    const errors = await imports.errors(prepared.id)
    assert.equal(done.status, 'completed', JSON.stringify(done))
    const records = await recordsBy(entity, by)
    const companies = entity === 'companies' ? records : await recordsBy('companies', 'id')
    const contacts = entity === 'deals' ? await recordsBy('contacts', 'id') : new Map()
    const keyColumn = prepared.file.columns.find(
      (column: Json) => column.proposed === by || (by === 'email' && column.proposed === 'emails'),
    ).name
    const problems: string[] = []
    for (const [n, one] of expected.entries()) {
      const key = rows[n]![keyColumn]!
      if ('refused' in one) {
        const line = errors.split('\r\n').find((text) => text.includes(key)) ?? ''
        if (!one.refused.test(line)) problems.push(`${key}: ${one.refused} is not in ${line || 'the errors'}`)
        continue
      }
      const record = records.get(one.record[by] as string)
      if (!record) {
        const line = errors.split('\r\n').find((text) => text.includes(key))
        problems.push(`${key} is missing: ${line}`)
        continue
      }
      for (const [path, wanted] of Object.entries(one.record)) {
        let is = valueAt(record, path)
        if (path === 'company_id') is = { externalId: companies.get(is as string)?.external_id }
        if (path === 'contact_id') is = { externalId: contacts.get(is as string)?.external_id }
        if (wanted && typeof wanted === 'object' && 'user' in wanted)
          is = { user: Object.keys(users).find((name) => users[name] === is) }
        if (JSON.stringify(is) !== JSON.stringify(wanted))
          problems.push(`${key} ${path}: ${JSON.stringify(is)} instead of ${JSON.stringify(wanted)}`)
      }
    }
    assert.deepEqual(problems.slice(0, 10), [], `${problems.length} problems`)
    const imported = await on.api.request('GET', `/v1/objects/${entity}?import_id=${prepared.id}&limit=1`)
    assert.equal(imported.body.total, ROWS - refused)
    assert.deepEqual([done.progress.rows, done.progress.failed], [ROWS, refused])
  }

  /** A dry run says the same, and leaves no stages behind. */
  async function tried(id: string, decisions: object, refused: number): Promise<void> {
    const pipelines = await on.api.request('GET', '/v1/pipelines')
    const started = await imports.start(id, { ...decisions, dry_run: true })
    assert.equal(started.status, 200, JSON.stringify(started.body))
    const { progress, preview } = await imports.ended(id, 120)
    assert.deepEqual([progress.created, progress.failed], [ROWS - refused, refused])
    assert.equal(preview.length, 20)
    const [{ row, line, action, record_id, changes }] = preview
    assert.deepEqual([row, line, action, record_id], [1, 2, 'created', null])
    assert.match(JSON.stringify(changes), /Engine 0|Opportunity 0|Pipe deal 0/)
    assert.deepEqual((await on.api.request('GET', '/v1/pipelines')).body, pipelines.body)
  }

  const random = randomOf(SEED)
  for (const file of [...hubspot(random), ...salesforce(random), ...pipedrive(random), ...google(random)])
    it(`has every row of ${file.name} right`, () => move(file))

  it('shows what an update would change, and takes an import back', async () => {
    const file = 'id,Email,Tags\r\n'
    const { body } = await on.api.request('GET', '/v1/objects/contacts?email=g000@mail.example')
    const [{ id, tags }] = body.data
    const { body: prepared } = await imports.prepare(
      { entity: 'contacts', mode: 'upsert', by: 'id', dry_run: true },
      `${file}${id},g000@mail.example,New;Friends\r\n${prepared404},x@mail.example,\r\n`,
    )
    await imports.start(prepared.id)
    const { preview, progress } = await imports.ended(prepared.id)
    assert.deepEqual(preview, [
      {
        row: 1,
        line: 2,
        action: 'updated',
        record_id: id,
        changes: { tags: { from: tags, to: ['New', 'Friends'] } },
      },
    ])
    assert.equal(progress.failed, 1)
    assert.match(await imports.errors(prepared.id), /id: there is no contact with this id/)
    await imports.start(prepared.id, { dry_run: false })
    await imports.ended(prepared.id)
    const undo = await on.api.request('POST', `/v1/imports/${prepared.id}/undo`, { body: { confirm: true } })
    assert.equal(undo.status, 201, JSON.stringify(undo.body))
    await until(async () => {
      const job = await on.api.request('GET', `/v1/bulk-jobs/${undo.body.id}`)
      return job.body.status === 'completed' || undefined
    }, 'the end of the undo')
    const after = await on.api.request('GET', `/v1/objects/contacts/${id}`)
    assert.deepEqual(after.body.tags, tags)
  })

  it('links notes, and refuses values that mean nothing', async () => {
    const notes = [
      'Body,External ID,Company External ID,Contact Email,Deal External ID',
      'Met them,n-1,90000;90001,g000@mail.example,77000',
      'Alone,n-2,,nobody@mail.example,',
    ].join('\n')
    const ended = await imports.run({ entity: 'notes', mode: 'upsert', by: 'external_id' }, notes)
    assert.deepEqual([ended.progress.created, ended.progress.failed], [1, 1])
    assert.match(await imports.errors(ended.id), /there is no contact with the email nobody@mail\.example/)
    const [note] = (await on.api.request('GET', '/v1/objects/notes?external_id=n-1')).body.data
    const linked = async (kind: string) =>
      (await on.api.request('GET', `/v1/objects/notes/${note.id}/${kind}`)).body.data.length
    assert.deepEqual([await linked('companies'), await linked('contacts'), await linked('deals')], [2, 1, 1])

    const { body } = await imports.prepare({ entity: 'deals' }, 'name,stage,owner_id\nA,Hot,Nobody\n')
    const values = { stage: { Hot: 'nonsense' }, owner_id: { Nobody: 'no one' } }
    const refused = await imports.start(body.id, { values })
    assert.equal(refused.status, 422)
    assert.deepEqual(
      refused.body.detail.map(({ loc }: Json) => loc),
      [
        ['body', 'values', 'stage', 'Hot'],
        ['body', 'values', 'owner_id', 'Nobody'],
      ],
    )
  })

  it('changes nothing where an export is imported again', async () => {
    for (const entity of ['companies', 'contacts', 'deals']) {
      const created = await on.api.request('POST', '/v1/exports', { body: { entity } })
      const done: Json = await until(async () => {
        const { body } = await on.api.request('GET', `/v1/exports/${created.body.id}`)
        return body.ended_at ? body : undefined
      }, 'the end of the export')
      const { body: file } = await on.api.request('GET', `/v1/exports/${done.id}/file`)
      const ended = await imports.run({ entity, mode: 'upsert', by: 'id' }, file)
      const { rows, created: made, updated, failed } = ended.progress
      assert.deepEqual({ rows, made, updated, failed }, { rows: done.rows, made: 0, updated: 0, failed: 0 })
    }
  })
})
