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
    const started = await imports.start(prepared.id, decisions)
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
    const refused = expected.filter((one) => 'refused' in one).length
    assert.deepEqual([done.progress.rows, done.progress.failed], [ROWS, refused])
  }

  const random = randomOf(SEED)
  for (const file of [...hubspot(random), ...salesforce(random), ...pipedrive(random), ...google(random)])
    it(`has every row of ${file.name} right`, () => move(file))

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
