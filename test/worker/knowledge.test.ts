import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createRetry, prepareRetryOf } from '../../db/runs/retry.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { createKey } from '../support/api.ts'
import { testActor } from '../support/database.ts'
import { edge } from '../support/nodes.ts'
import { withApiAndWorker } from '../support/with-api.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const COLLECTIONS = '/v1/knowledge/collections'

describe('the knowledge base in workflows', () => {
  const suite = withApiAndWorker()

  async function collection(name: string, documents: object[] = []): Promise<string> {
    const post = async (path: string, body: object) => {
      const answer = await suite.api.request('POST', path, { body })
      equal(answer.status, 201, JSON.stringify(answer.body))
      return answer.body.id as string
    }
    const id = await post(COLLECTIONS, { name })
    for (const one of documents) await post(`${COLLECTIONS}/${id}/documents`, one)
    return id
  }
  const queue = (nodes: NodeSpec[], outputs: Record<string, unknown> = {}) => {
    const edges = nodes.slice(1).map(({ id }, i) => edge(nodes[i]!.id, id))
    return queueRun(suite.db, suite.api.organizationId, { nodes, edges, outputs })
  }
  const add = (config: object, id = 'add'): NodeSpec => ({
    id,
    type: 'knowledge_add',
    config: { title: 'Note', body: 'A note', ...config },
  })
  const documentsIn = (collection_id: string) =>
    suite.db.system('knowledge_documents').where({ collection_id }).orderBy('id')
  const retried = async (id: string) => {
    const retry = await suite.db.tenant(suite.api.organizationId, testActor, async (tx) =>
      createRetry(tx, await prepareRetryOf(tx, id, { from_start: true, version: 'same' }), 0),
    )
    return untilRun(suite.db, retry)
  }
  const FAIL: NodeSpec = { id: 'fail', type: 'parse_json', config: { text: '{' } }

  it('is searched for the context of a prompt', async () => {
    const id = await collection('Help center', [
      {
        title: 'Payments',
        body: '# Refunds\n\nRefunds take five business days.',
        format: 'markdown',
        tags: ['billing'],
        source_url: 'https://help.example.com/payments',
      },
      { title: 'Shipping', body: 'Parcels travel three days.' },
    ])
    const search = (config: object, name: string): NodeSpec => ({
      id: name,
      type: 'knowledge_search',
      config: { q: 'How long do refunds take?', ...config },
    })
    const run = await untilRun(
      suite.db,
      await queue(
        [
          search({ collection: 'help CENTER', limit: 1 }, 'find'),
          search({ collection: id, q: 'unicorn' }, 'none'),
          search({ q: '???' }, 'wordless'),
          {
            id: 'prompt',
            type: 'set_fields',
            config: { fields: { text: 'Answer from these passages:\n{{ nodes.find.output.text }}' } },
          },
        ],
        {
          find: '{{ nodes.find.output }}',
          none: '{{ nodes.none.output }}',
          wordless: '{{ nodes.wordless.output.count }}',
          prompt: '{{ nodes.prompt.output.text }}',
        },
      ),
    )
    equal(run.status, 'completed', JSON.stringify(run.error))
    const { find, none, wordless, prompt } = run.outputs as {
      find: { passages: Record<string, unknown>[]; count: number; has_more: boolean; text: string }
      none: unknown
      wordless: number
      prompt: string
    }
    const [{ document_id: _, score, ...passage } = {}] = find.passages
    deepEqual(passage, {
      collection_id: id,
      title: 'Payments',
      heading: 'Refunds',
      match: 'any',
      tags: ['billing'],
      text: 'Refunds\n\nRefunds take five business days.',
      source_url: 'https://help.example.com/payments',
    })
    ok((score as number) > 0 && (score as number) < 0.5)
    deepEqual([find.count, wordless, none], [1, 0, { passages: [], count: 0, has_more: false, text: '' }])
    equal(
      prompt,
      'Answer from these passages:\n[1] Payments > Refunds (https://help.example.com/payments)\nRefunds\n\nRefunds take five business days.',
    )
  })

  it('takes documents, which the API then finds, and replaces those with the same external_id', async () => {
    const id = await collection('Notes')
    const config = {
      collection: 'Notes',
      body: '<p>The <b>walrus</b> sleeps</p>',
      format: 'html',
      external_id: 'w',
    }
    const first = await untilRun(suite.db, await queue([add(config)], { added: '{{ nodes.add.output }}' }))
    const { added } = first.outputs as { added: { id: string; created: boolean; version: number } }
    deepEqual([added.created, added.version], [true, 1])
    const { body } = await suite.api.request('GET', `/v1/knowledge/search?q=walruses&collection_id=${id}`)
    deepEqual([body.data[0].document_id, body.data[0].text], [added.id, 'The walrus sleeps'])
    const { body: document } = await suite.api.request('GET', `/v1/knowledge/documents/${added.id}`)
    equal(document.created_by.type, 'workflow_run')
    const second = await untilRun(
      suite.db,
      await queue([add({ ...config, body: 'It woke up' })], { added: '{{ nodes.add.output }}' }),
    )
    const again = (second.outputs as { added: typeof added }).added
    deepEqual([again.id, again.created, again.version], [added.id, false, 2])
    equal((await documentsIn(id)).length, 1)
  })

  it('has each document once after a retry of the run, with its last content', async () => {
    const id = await collection('Once')
    const run = await queue([add({ collection: 'Once', body: 'Of {{ run.id }}' }), FAIL])
    equal((await untilRun(suite.db, run)).status, 'failed')
    const [first] = await documentsIn(id)
    const retry = await retried(run)
    equal(retry.status, 'failed')
    const rows = await documentsIn(id)
    deepEqual(
      rows.map((row) => row.id),
      [first!.id],
    )
    equal(rows[0]!.body, `Of ${retry.id}`)
  })

  it('has a document for each item of a loop, once also in a retry', async () => {
    const id = await collection('Loop')
    const nodes: NodeSpec[] = [
      { id: 'each', type: 'for_each', config: { items: ['a', 'b', 'c'], concurrency: 3 } },
      add({ collection: 'Loop', title: 'Item {{ item }}' }),
      FAIL,
    ]
    const edges = [
      { from: 'each', handle: 'item', to: 'add' },
      { from: 'each', handle: 'done', to: 'fail' },
    ]
    const run = await queueRun(suite.db, suite.api.organizationId, { nodes, edges })
    await untilRun(suite.db, run)
    await retried(run)
    deepEqual((await documentsIn(id)).map(({ title }) => title).sort(), ['Item a', 'Item b', 'Item c'])
  })

  it('divides long documents, each before the transaction that adds it', async () => {
    const id = await collection('Long')
    const body = '<p>word <b>bold</b></p>'.repeat(20_000)
    const nodes: NodeSpec[] = [
      { id: 'each', type: 'for_each', config: { items: ['a', 'b', 'c'], concurrency: 3 } },
      add({
        collection: 'Long',
        title: 'Item {{ item }}',
        body: '{{ item }}{{ inputs.body }}',
        format: 'html',
      }),
      FAIL,
    ]
    const edges = [
      { from: 'each', handle: 'item', to: 'add' },
      { from: 'each', handle: 'done', to: 'fail' },
    ]
    const run = await queueRun(suite.db, suite.api.organizationId, { nodes, edges }, { body })
    const { rows: before } = await suite.db.system.raw('select now() as at')
    await untilRun(suite.db, run)
    const added = await documentsIn(id)
    deepEqual(added.map(({ title, passages }) => [title, passages > 20]).sort(), [
      ['Item a', true],
      ['Item b', true],
      ['Item c', true],
    ])
    // Each document is the first that its segment adds: the transactions that write them differ.
    equal(new Set(added.map(({ created_at }) => created_at.getTime())).size, 3)
    ok(added.every(({ created_at }) => created_at > before[0].at))
  })

  it('fails a node that names an unknown collection', async () => {
    const errorOf = async (node: NodeSpec) => (await untilRun(suite.db, await queue([node]))).error
    const unknown = await errorOf(add({ collection: 'Nowhere' }))
    deepEqual(
      [unknown?.code, unknown?.message],
      ['not_found', 'collection Nowhere not found: GET /v1/knowledge/collections lists them'],
    )
    const find = { id: 'find', type: 'knowledge_search', config: { q: 'a', collection: 'Nowhere' } }
    equal((await errorOf(find))?.code, 'not_found')
  })

  it('is tested by nodes/test with its scopes, after a preview', async () => {
    await collection('Tests')
    const body = {
      node_type: 'knowledge_add',
      config: { collection: 'Tests', title: 'T', body: 'secret text', external_id: 'x-1' },
    }
    const { body: preview } = await suite.api.request('POST', '/v1/workflows/nodes/test', { body })
    equal(preview.preview.effect, 'write')
    deepEqual(preview.preview.calls, [
      'adding a document to the collection Tests, 11 bytes of text, instead of the one with the external_id x-1',
    ])
    const { body: tested } = await suite.api.request('POST', '/v1/workflows/nodes/test', {
      body: { ...body, confirm: true },
    })
    deepEqual([tested.status, tested.output.passages], ['completed', 1])
    match(tested.log[1].message, /^added the document .+, 1 passages/)
    const { organizationId } = suite.api
    const { key } = await createKey(suite.db, organizationId, { scopes: ['workflows:run', 'knowledge:read'] })
    const refused = await suite.api.request('POST', '/v1/workflows/nodes/test', { body, key })
    deepEqual([refused.status, refused.body.error.message], [403, 'the key lacks the scope knowledge:write'])
  })
})
