import assert from 'node:assert/strict'
import { createDefinition } from '../../db/records/custom-fields/definitions.ts'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const crm = (id: string, config: Record<string, unknown>) => ({ id, type: 'crm_manager', config })

describe('runs that work on records', () => {
  const suite = withWorker()

  it('create, get, search, update, upsert, link, list, unlink and delete', async () => {
    const contact = { entity: 'contacts', id: '{{ nodes.create.output.id }}' }
    const company = { target: 'companies', target_id: '{{ nodes.company.output.record.id }}' }
    const nodes = [
      crm('create', {
        operation: 'create',
        entity: 'contacts',
        fields: { email: 'ada@example.com', first_name: '{{ inputs.name }}' },
      }),
      crm('get', { operation: 'get', ...contact }),
      crm('update', { operation: 'update', ...contact, fields: { first_name: 'Augusta' } }),
      crm('again', {
        operation: 'upsert',
        entity: 'contacts',
        by: 'email',
        fields: { email: 'ADA@example.com', job_title: 'Analyst' },
      }),
      crm('company', {
        operation: 'upsert',
        entity: 'companies',
        by: 'domain',
        fields: { name: 'Engines', domain: 'engines.example' },
      }),
      crm('link', { operation: 'link', ...contact, ...company, properties: { role: 'founder' } }),
      crm('related', { operation: 'list_related', ...contact, target: 'companies' }),
      crm('found', {
        operation: 'search',
        entity: 'contacts',
        filters: { 'email[contains]': 'ada@' },
        limit: 5,
      }),
      crm('unlink', { operation: 'unlink', ...contact, ...company }),
      crm('delete', { operation: 'delete', ...contact }),
      crm('gone', { operation: 'get', ...contact }),
    ]
    const id = await queueRun(
      suite.db,
      suite.organizationId,
      {
        nodes: [...nodes, { id: 'end', type: 'stop', config: {} }],
        edges: [
          ...nodes
            .slice(1)
            .map((node, index) => ({ from: nodes[index]!.id, handle: 'success', to: node.id })),
          { from: 'gone', handle: 'error', to: 'end' },
        ],
        inputs: { name: { type: 'string' } },
        outputs: {
          got: '{{ nodes.get.output.first_name }}',
          updated: '{{ nodes.update.output.first_name }}',
          created: ['{{ nodes.again.output.created }}', '{{ nodes.company.output.created }}'],
          title: '{{ nodes.found.output.data[0].job_title }}',
          related: '{{ nodes.related.output.data[0].name }}',
          deleted: '{{ nodes.delete.output.deleted }}',
        },
      },
      { name: 'Ada' },
    )
    const run = await untilRun(suite.db, id)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.deepEqual(run.outputs, {
      got: 'Ada',
      updated: 'Augusta',
      created: [false, true],
      title: 'Analyst',
      related: 'Engines',
      deleted: true,
    })
    const rows = await suite.db.system('run_nodes').where({ run_id: id, node_id: 'gone' })
    assert.deepEqual([rows[0].status, rows[0].handle, rows[0].error.code], ['failed', 'error', 'not_found'])
    const raised = await suite.db.system('events').whereNot('name', 'like', 'workflow.%').orderBy('id')
    assert.deepEqual([...new Set(raised.map((event) => event.name))].sort(), [
      'company.created',
      'contact.created',
      'contact.deleted',
      'contact.updated',
    ])
  })

  it('create deals with their tasks, notes and activities', async () => {
    const deal = [{ object: 'deal', id: '{{ nodes.deal.output.id }}' }]
    const create = (id: string, entity: string, fields: object) =>
      crm(id, { operation: 'create', entity, fields })
    const nodes = [
      create('company', 'companies', { name: 'Engines' }),
      create('deal', 'deals', {
        name: '{{ inputs.name }}',
        amount: '{{ inputs.amount }}',
        company_id: '{{ nodes.company.output.id }}',
      }),
      create('task', 'tasks', { title: 'Call', associations: deal }),
      create('note', 'notes', { body: 'Wants it by March.', associations: deal }),
      create('activity', 'activities', { type: 'call', associations: deal }),
      crm('won', {
        operation: 'update',
        entity: 'deals',
        id: '{{ nodes.deal.output.id }}',
        fields: { stage: 'won' },
      }),
      crm('notes', {
        operation: 'list_related',
        entity: 'deals',
        id: '{{ nodes.deal.output.id }}',
        target: 'notes',
      }),
      crm('tasks', { operation: 'search', entity: 'tasks', filters: { 'status[in]': ['todo', 'waiting'] } }),
    ]
    const id = await queueRun(
      suite.db,
      suite.organizationId,
      {
        nodes,
        edges: nodes
          .slice(1)
          .map((node, index) => ({ from: nodes[index]!.id, handle: 'success', to: node.id })),
        inputs: { name: { type: 'string' }, amount: { type: 'number' } },
        outputs: {
          deal: ['{{ nodes.won.output.probability }}', '{{ nodes.deal.output.amount }}'],
          note: '{{ nodes.notes.output.data[0].body }}',
          task: '{{ nodes.tasks.output.data[0].title }}',
        },
      },
      { name: 'Second engine', amount: 1250 },
    )
    const run = await untilRun(suite.db, id)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.deepEqual(run.outputs, { deal: [100, '1250.00'], note: 'Wants it by March.', task: 'Call' })
    assert.ok(await suite.db.system('events').where({ name: 'deal.won' }).first())
  })

  it('store custom fields as defined', async () => {
    const [since, score] = ['since', 'score'].map((name) => `custom_fields.${name}`)
    await suite.db.tenant(suite.organizationId, { type: 'system', id: null }, async (tx) => {
      await createDefinition(tx, 'notes', 'since', { type: 'date' })
      await createDefinition(tx, 'notes', 'score', { type: 'number' })
    })
    const note = (custom_fields: object) => ({
      operation: 'create',
      entity: 'notes',
      fields: { body: 'Defined', custom_fields },
    })
    const nodes = [
      crm('made', note({ since: '{{ inputs.since }}', score: '10' })),
      crm('found', { operation: 'search', entity: 'notes', filters: { [`${score}[gt]`]: 9 }, sort: since }),
      crm('refused', note({ since: 'yesterday' })),
    ]
    const id = await queueRun(
      suite.db,
      suite.organizationId,
      {
        nodes,
        edges: [
          { from: 'made', handle: 'success', to: 'found' },
          { from: 'found', handle: 'success', to: 'refused' },
        ],
        inputs: { since: { type: 'string' } },
        outputs: {},
      },
      { since: '2026-01-31' },
    )
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.error?.node_id, run.error?.code], ['refused', 'validation_error'])
    const notes = await suite.db.system('notes').where({ body: 'Defined' })
    assert.deepEqual(
      notes.map((row) => row.custom_fields),
      [{ since: '2026-01-31', score: 10 }],
    )
  })

  it('fail with each invalid value, its field and what to write instead', async () => {
    await suite.db.tenant(suite.organizationId, { type: 'system', id: null }, async (tx) => {
      await createDefinition(tx, 'companies', 'since', { type: 'date' })
      await createDefinition(tx, 'companies', 'tier', { type: 'select', options: ['gold', 'silver'] })
    })
    const errorOf = async (config: object) => {
      const node = crm('it', { entity: 'companies', ...config })
      const id = await queueRun(suite.db, suite.organizationId, { nodes: [node] })
      return (await untilRun(suite.db, id)).error as RunError
    }
    const custom_fields = { since: 'yesterday', tier: 'glod', stage: { from: 1 } }
    const refused = await errorOf({ operation: 'create', fields: { name: 'Engines', custom_fields } })
    assert.equal(refused.code, 'validation_error')
    assert.match(
      refused.message,
      /custom_fields\.since: must be .*; custom_fields\.tier: must be one of gold, silver/,
    )
    assert.match(refused.message, /custom_fields\.stage: .*: objects need a definition of type json/)
    const { issues } = refused.details as { issues: { loc: string[]; hint?: string }[] }
    assert.deepEqual(
      issues.map(({ loc, hint }) => [loc.join('.'), hint]),
      [
        ['body.custom_fields.since', undefined],
        ['body.custom_fields.tier', undefined],
        ['body.custom_fields.stage', 'objects need a definition of type json'],
      ],
    )
    const found = await errorOf({ operation: 'search', filters: { 'name[like]': 'En' } })
    assert.match(found.message, /name\[like\]: .*: name supports the operators eq, /)
  })

  it('fail an upsert whose key is empty, instead of creating a record without a name', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [
        crm('save', {
          operation: 'upsert',
          entity: 'contacts',
          by: 'email',
          fields: { email: '{{ trigger.payload.email | default: "" }}', job_title: 'Keyless' },
        }),
      ],
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.code], ['failed', 'validation_error'], JSON.stringify(run.error))
    assert.match(run.error!.message, /email/)
    assert.deepEqual(await suite.db.system('contacts').where({ job_title: 'Keyless' }), [])
  })

  it('roll back the writes of a failed node and keep those of the others', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [
        crm('first', { operation: 'create', entity: 'companies', fields: { name: 'Kept' } }),
        crm('second', {
          operation: 'create',
          entity: 'companies',
          fields: {
            name: 'Undone',
            associations: [{ object: 'contacts', id: '019a0000-0000-7000-8000-000000000001' }],
          },
        }),
      ],
      edges: [{ from: 'first', handle: 'success', to: 'second' }],
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.node_id], ['failed', 'second'], JSON.stringify(run.error))
    const names = await suite.db.system('companies').whereIn('name', ['Kept', 'Undone'])
    assert.deepEqual(
      names.map((row) => row.name),
      ['Kept'],
    )
  })
})
