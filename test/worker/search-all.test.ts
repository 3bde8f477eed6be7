import assert from 'node:assert/strict'
import { createRecord } from '../../db/records/create.ts'
import { testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const RECORDS = 230
/** All records share it: a filter by time would lose most. */
const CREATED = new Date('2026-01-01T00:00:00.000Z')

const search = (config: Record<string, unknown>) => ({
  id: 'find',
  type: 'crm_manager',
  config: { operation: 'search', entity: 'companies', filters: { 'name[starts_with]': 'Page ' }, ...config },
})

describe('a search of more than one page', () => {
  const suite = withWorker({})
  const run = async (definition: PartialDefinition) =>
    untilRun(suite.db, await queueRun(suite.db, suite.organizationId, definition, {}))
  const alone = (config: Record<string, unknown>) =>
    run({
      nodes: [search(config)],
      edges: [],
      outputs: {
        names: '{{ nodes.find.output.data | map: "name" }}',
        more: '{{ nodes.find.output.has_more }}',
        next: '{{ nodes.find.output.next_cursor }}',
      },
    })
  const names = Array.from({ length: RECORDS }, (_, n) => `Page ${String(n).padStart(3, '0')}`)

  before(async () => {
    await suite.db.tenant(suite.organizationId, testActor, async (tx) => {
      for (const name of names) await createRecord(tx, 'companies', { name })
    })
    await suite.db.system('companies').update({ created_at: CREATED })
  })

  it('reads every match with `all`, also those that share their time of creation', async () => {
    const { outputs } = await alone({ all: true })
    assert.deepEqual([...(outputs!.names as string[])].sort(), names)
    assert.deepEqual([outputs!.more, outputs!.next], [false, null])
    assert.deepEqual(
      (await alone({ all: true, max: RECORDS, sort: 'name', order: 'asc' })).outputs!.names,
      names,
    )
  })

  it('fails with a `q` that renders to nothing: it would find all records', async () => {
    const { error } = await alone({ q: '{{ run.id | slice: 0, 0 }}' })
    assert.equal(error?.code, 'invalid_config')
    assert.match(error!.message, /q is empty, and would find all records/)
  })

  it('fails where more match than `max`, and where they are too large', async () => {
    const { error } = await alone({ all: true, max: RECORDS - 1 })
    assert.equal(error?.code, 'too_many_records')
    assert.match(error!.message, /^More than 229 companies match: raise `max`, or narrow the filters/)
    await suite.db
      .system('companies')
      .where('name', 'Page 007')
      .update({ description: 'x'.repeat(60_000) })
    const large = names.slice(0, 30)
    await suite.db
      .system('companies')
      .whereIn('name', large)
      .update({ description: 'x'.repeat(60_000) })
    assert.equal((await alone({ all: true })).error?.code, 'output_too_large')
    await suite.db.system('companies').whereIn('name', large).update({ description: null })
  })

  it('goes from page to page in a repeat, with a for_each over each page', async () => {
    const { outputs } = await run({
      nodes: [
        {
          id: 'pages',
          type: 'repeat',
          config: {
            until: '{{ not nodes.find.output.has_more }}',
            output: {
              next_cursor: '{{ nodes.find.output.next_cursor }}',
              seen: '{{ nodes.each.output.results }}',
            },
          },
        },
        search({ limit: 100, sort: 'name', order: 'asc', cursor: '{{ previous.next_cursor }}' }),
        {
          id: 'each',
          type: 'for_each',
          config: { items: '{{ nodes.find.output.data }}', output: '{{ item.name }}' },
        },
        { id: 'body', type: 'set_fields', config: { fields: {} } },
      ],
      edges: [
        { from: 'pages', handle: 'turn', to: 'find' },
        { from: 'find', handle: 'success', to: 'each' },
        { from: 'each', handle: 'item', to: 'body' },
      ],
      outputs: {
        turns: '{{ nodes.pages.output.turns }}',
        seen: '{{ nodes.pages.output.results | map: "seen" }}',
      },
    })
    assert.equal(outputs!.turns, 3)
    assert.deepEqual((outputs!.seen as string[][]).flat(), names)
  })

  it('refuses the cursor of another search', async () => {
    const first = await alone({ limit: 10 })
    const { error } = await alone({ limit: 10, sort: 'name', cursor: first.outputs!.next })
    assert.equal(error?.code, 'invalid_request')
  })
})
