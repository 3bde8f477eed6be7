import assert from 'node:assert/strict'
import type { Answer } from '../../support/answer.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

describe('/v1/pipelines', () => {
  const suite = withApi()
  // Each test has an organization of its own, because each changes its pipelines.
  let key: string
  beforeEach(async () => {
    key = (await createKey(suite.db, await createOrganization(suite.db))).key
  })

  const call = (method: string, path: string, body?: object, headers = {}) =>
    suite.api.request(method, path, { body, key, headers })
  const create = (body: object) => call('POST', '/v1/pipelines', body)
  const deal = async (fields: object) => {
    const answer = await call('POST', '/v1/objects/deals', { name: 'Loom', ...fields })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const change = (id: string, patch: object) => call('PATCH', `/v1/objects/deals/${id}`, patch)
  const stored = async (id: string) => (await call('GET', `/v1/objects/deals/${id}`)).body
  const names = ({ body }: Answer) => body.stages.map(({ name }: { name: string }) => name)
  const places = ({ status, body }: Answer) => [
    status,
    ...(body.detail ?? []).map(({ loc }: { loc: unknown[] }) => loc.slice(1).join('.')),
  ]

  const renewals = {
    name: 'renewals',
    stages: [
      { name: 'due', probability: 60 },
      {
        name: 'offered',
        label: 'Offer sent',
        probability: 80,
        required_fields: ['amount', 'custom_fields.term'],
      },
      { name: 'renewed', outcome: 'won' },
      { name: 'ended', outcome: 'lost' },
    ],
  }

  it('has a default pipeline without anything done', async () => {
    const { data, total } = (await call('GET', '/v1/pipelines')).body
    assert.equal(total, 1)
    const [{ id, stages, created_at, updated_at, ...one }] = data
    assert.deepEqual(one, {
      object: 'pipeline',
      name: 'default',
      label: 'Default',
      is_default: true,
      version: 1,
    })
    assert.ok(Date.parse(created_at) > 0 && Date.parse(updated_at) > 0)
    assert.deepEqual(
      stages.map(({ name, order, probability, outcome }: Record<string, unknown>) => [
        name,
        order,
        probability,
        outcome,
      ]),
      [
        ['lead', 1, 10, 'open'],
        ['qualified', 2, 25, 'open'],
        ['proposal', 3, 50, 'open'],
        ['negotiation', 4, 75, 'open'],
        ['won', 5, 100, 'won'],
        ['lost', 6, 0, 'lost'],
      ],
    )
    for (const path of [id, 'default'])
      assert.deepEqual((await call('GET', `/v1/pipelines/${path}`)).body, data[0])
    assert.equal((await call('GET', '/v1/pipelines/other')).status, 404)
    const { pipeline, stage, outcome, probability, closed_at } = await deal({})
    assert.deepEqual(
      [pipeline, stage, outcome, probability, closed_at],
      ['default', 'lead', 'open', 10, null],
    )
  })

  it('creates, changes and deletes; other organizations do not see it', async () => {
    const made = await create({ ...renewals, label: 'Renewals' })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    assert.equal(made.headers.get('etag'), '"1"')
    assert.deepEqual(made.body.stages[1], {
      name: 'offered',
      label: 'Offer sent',
      order: 2,
      probability: 80,
      outcome: 'open',
      required_fields: ['amount', 'custom_fields.term'],
    })
    const path = `/v1/pipelines/${made.body.id}`
    assert.deepEqual((await call('GET', path)).body, made.body)
    const other = (await createKey(suite.db, await createOrganization(suite.db))).key
    assert.equal((await suite.api.request('GET', path, { key: other })).status, 404)
    assert.equal((await call('PATCH', path, { label: 'R' }, { 'If-Match': '"7"' })).status, 412)
    const changed = await call('PATCH', path, {
      is_default: true,
      stages: [
        { name: 'ended' },
        { name: 'due', order: 1, label: 'Due soon' },
        { name: 'renewed' },
        { label: 'Späte Mahnung', probability: 5 },
      ],
    })
    assert.deepEqual(names(changed), ['ended', 'due', 'renewed', 'spate_mahnung'])
    assert.equal(changed.body.stages[1].probability, 60)
    assert.deepEqual(
      (await call('GET', '/v1/pipelines')).body.data.map((one: Record<string, unknown>) => [
        one.name,
        one.is_default,
        one.version,
      ]),
      [
        ['default', false, 2],
        ['renewals', true, 2],
      ],
    )
    assert.equal((await deal({})).pipeline, 'renewals')
    assert.equal((await call('DELETE', path)).status, 409)
    assert.equal((await call('DELETE', '/v1/pipelines/default')).status, 200)
  })

  it('names everything that is wrong, at once', async () => {
    assert.deepEqual(places(await create({})), [422, 'stages', 'name'])
    assert.deepEqual(places(await create({ preset: 'hubspot', stages: renewals.stages })), [422, 'stages'])
    assert.deepEqual(places(await create({ ...renewals, name: 'default' })), [422, 'name'])
    assert.deepEqual(
      places(
        await create({
          name: 'bad',
          stages: [
            { name: 'a' },
            { name: 'b', outcome: 'won', probability: 50 },
            { name: 'c', outcome: 'lost', label: 'B', required_fields: ['stage', 'nope'] },
          ],
        }),
      ),
      [
        422,
        'stages.0.probability',
        'stages.1.probability',
        'stages.2.required_fields',
        'stages.2.required_fields',
        'stages.2.name',
      ],
    )
    assert.deepEqual(places(await create({ name: 'bad', stages: [{ name: 'w', outcome: 'won' }] })), [
      422,
      'stages',
    ])
    assert.deepEqual(places(await call('PATCH', '/v1/pipelines/default', { is_default: false })), [
      422,
      'is_default',
    ])
  })

  it('has the pipelines of HubSpot, Pipedrive and Salesforce', async () => {
    for (const preset of ['hubspot', 'pipedrive', 'salesforce']) {
      const made = await create({ preset, name: preset, label: preset })
      assert.equal(made.status, 201, JSON.stringify(made.body))
    }
    const hubspot = await deal({ pipeline: 'hubspot', stage: 'Decision Maker Bought-In' })
    assert.deepEqual([hubspot.stage, hubspot.probability], ['decision_maker_bought_in', 80])
    const closed = await deal({ pipeline: 'salesforce', stage: 'Closed Won' })
    assert.deepEqual([closed.stage, closed.outcome, closed.probability], ['closed_won', 'won', 100])
  })

  it('keeps deals in stages of their pipeline', async () => {
    await create(renewals)
    const { id } = await deal({ pipeline: 'renewals', custom_fields: { term: 12 } })
    assert.deepEqual([(await stored(id)).stage, (await stored(id)).probability], ['due', 60])
    const wrong = await call('POST', '/v1/objects/deals', { name: 'Loom', stage: 'offered', deal_type: 'x' })
    assert.deepEqual(places(wrong), [422, 'deal_type', 'stage'])
    const unknown = await change(id, { stage: 'won' })
    assert.deepEqual(places(unknown), [422, 'stage'])
    const [issue] = unknown.body.detail
    assert.match(issue.msg, /not a stage of the pipeline renewals: it is one of default/)
    assert.match(issue.hint, /stages of renewals are due, offered, renewed, ended/)
    assert.deepEqual(places(await change(id, { pipeline: 'default' })), [422, 'stage'])
    assert.deepEqual(places(await change(id, { pipeline: 'renewal' })), [422, 'pipeline'])
    const moved = await change(id, { pipeline: 'default', stage: 'won' })
    assert.deepEqual([moved.status, moved.body.outcome], [200, 'won'])
    const back = await change(id, { pipeline: 'renewals', stage: null })
    assert.deepEqual([back.body.stage, back.body.outcome, back.body.closed_at], ['due', 'open', null])
  })

  it('raises the events of the outcome, whatever its stage is called', async () => {
    await create(renewals)
    const { id } = await deal({ pipeline: 'renewals', amount: 5, custom_fields: { term: 1 } })
    await change(id, { stage: 'offered' })
    await change(id, { stage: 'renewed' })
    await change(id, { stage: 'ended' })
    await change(id, { pipeline: 'default', stage: 'lost' })
    const rows = await suite.db.system('events').where({ subject_id: id }).orderBy('id').select('name')
    assert.deepEqual(
      rows.map(({ name }) => name).filter((name) => !/created|updated/.test(name)),
      [
        'deal.stage_changed',
        'deal.stage_changed',
        'deal.won',
        'deal.stage_changed',
        'deal.lost',
        'deal.stage_changed',
      ],
    )
    const history = (await call('GET', `/v1/objects/deals/${id}/history?order=asc`)).body.data
    assert.deepEqual(
      history.flatMap(({ changes }: { changes: Record<string, { to: unknown }> }) => changes.stage?.to ?? []),
      ['due', 'offered', 'renewed', 'ended', 'lost'],
    )
  })

  it('tells since when a deal is in its stage', async () => {
    const { id, stage_changed_at, created_at } = await deal({})
    assert.equal(stage_changed_at, created_at)
    await change(id, { name: 'Mill' })
    assert.equal((await stored(id)).stage_changed_at, stage_changed_at)
    const { body } = await change(id, { stage: 'proposal' })
    assert.equal(body.stage_changed_at, body.updated_at)
    const past = await deal({ stage: 'won', created_at: '2020-01-01', closed_at: '2020-03-01' })
    assert.equal(past.stage_changed_at, '2020-03-01T00:00:00.000Z')
    const given = await deal({ created_at: '2020-01-01', stage_changed_at: '2021-05-05T10:00:00Z' })
    assert.equal(given.stage_changed_at, '2021-05-05T10:00:00.000Z')
    assert.deepEqual(places(await change(id, { stage_changed_at: '2021-05-05' })), [422, 'stage_changed_at'])
    const list = async (query: string) =>
      (await call('GET', `/v1/objects/deals?${query}`)).body.data.map((one: { id: string }) => one.id)
    assert.deepEqual(await list('sort=stage_changed_at&order=asc'), [past.id, given.id, id])
    assert.deepEqual(await list('stage_changed_at[lt]=2021-01-01'), [past.id])
    assert.deepEqual(await list('outcome=won'), [past.id])
    const asked = { metric: 'deals.days_in_stage', group_by: ['stage'] }
    const { body: days } = await call('POST', '/v1/analytics/query', asked)
    const [longest] = days.rows.filter(({ group }: { group: { stage: string } }) => group.stage === 'lead')
    assert.ok(longest.value > 1_900, JSON.stringify(days))
  })

  it('requires the fields of a stage when a deal enters it, and keeps them there', async () => {
    await create(renewals)
    const made = await deal({ pipeline: 'renewals' })
    assert.deepEqual(places(await change(made.id, { stage: 'offered' })), [
      422,
      'amount',
      'custom_fields.term',
    ])
    const body = { name: 'Loom', pipeline: 'renewals', stage: 'offered', amount: 5 }
    assert.deepEqual(places(await call('POST', '/v1/objects/deals', body)), [422, 'custom_fields.term'])
    const entered = await change(made.id, { stage: 'offered', amount: 5, custom_fields: { term: 3 } })
    assert.equal(entered.status, 200)
    assert.deepEqual(places(await change(made.id, { amount: null })), [422, 'amount'])
    assert.deepEqual(places(await change(made.id, { custom_fields: { term: null } })), [
      422,
      'custom_fields.term',
    ])
    assert.equal((await change(made.id, { name: 'Mill' })).status, 200)
  })

  it('removes a stage with deals only if it is named where they go', async () => {
    const made = await deal({ stage: 'proposal' })
    const own = await deal({ stage: 'qualified', probability: 33 })
    const usual = await deal({ stage: 'qualified' })
    const { stages } = (await call('GET', '/v1/pipelines/default')).body
    const without = stages
      .filter(({ name }: { name: string }) => name !== 'proposal')
      .map(({ name }: { name: string }) => (name === 'qualified' ? { name, probability: 30 } : { name }))
    const refused = await call('PATCH', '/v1/pipelines/default', { stages: without })
    assert.equal(refused.status, 409)
    assert.match(refused.body.error.message, /the stage proposal has 1 deal/)
    assert.deepEqual(refused.body.error.candidates, [{ object: 'deal', id: made.id }])
    assert.deepEqual(
      places(
        await call('PATCH', '/v1/pipelines/default', {
          stages: without,
          moves: { proposal: 'x', lead: 'won' },
        }),
      ),
      [422, 'moves.proposal', 'moves.lead'],
    )
    const moves = { proposal: 'negotiation' }
    const changed = await call('PATCH', '/v1/pipelines/default', { stages: without, moves })
    assert.equal(changed.status, 200, JSON.stringify(changed.body))
    assert.deepEqual(names(changed), ['lead', 'qualified', 'negotiation', 'won', 'lost'])
    const { stage, probability, version } = await stored(made.id)
    assert.deepEqual([stage, probability, version], ['negotiation', 75, 2])
    assert.deepEqual([(await stored(own.id)).probability, (await stored(usual.id)).probability], [33, 30])
    const outcome = without.map(({ name }: { name: string }) =>
      name === 'negotiation' ? { name, outcome: 'won' } : { name },
    )
    const conflict = await call('PATCH', '/v1/pipelines/default', { stages: outcome })
    assert.match(conflict.body.error.message, /the stage negotiation has 1 deal, whose outcome would change/)
    assert.deepEqual(places(await call('GET', '/v1/objects/deals?stage=proposal')), [422, 'stage'])
  })

  it('moves the deals of a deleted pipeline by stage, or else by outcome', async () => {
    await create(renewals)
    const due = await deal({ pipeline: 'renewals' })
    const won = await deal({ pipeline: 'renewals', stage: 'renewed' })
    assert.equal((await call('DELETE', '/v1/pipelines/renewals')).status, 409)
    assert.deepEqual(places(await call('DELETE', '/v1/pipelines/renewals?move_to=nope')), [422, 'move_to'])
    assert.equal((await call('DELETE', '/v1/pipelines/renewals?move_to=default')).status, 200)
    assert.deepEqual([(await stored(due.id)).stage, (await stored(won.id)).stage], ['lead', 'won'])
    assert.equal((await stored(won.id)).closed_at, won.closed_at)
    assert.equal((await call('GET', '/v1/pipelines/renewals')).status, 404)
  })

  it('restores a deal whose stage is gone into one with its outcome; a revert names the stage', async () => {
    await create(renewals)
    const gone = await deal({ pipeline: 'renewals', stage: 'renewed' })
    const moved = await deal({ pipeline: 'renewals' })
    await change(moved.id, { pipeline: 'default', stage: 'lead' })
    await call('DELETE', `/v1/objects/deals/${gone.id}`)
    assert.equal((await call('DELETE', '/v1/pipelines/renewals')).status, 200)
    const back = await call('POST', `/v1/objects/deals/${gone.id}/restore`)
    const { pipeline, stage, outcome, closed_at } = back.body
    assert.deepEqual([pipeline, stage, outcome, closed_at], ['default', 'won', 'won', gone.closed_at])
    const reverted = await call('POST', `/v1/objects/deals/${moved.id}/revert`, { version: 1 })
    assert.deepEqual(places(reverted), [422, 'pipeline'])
  })

  it('is locked against moves of deals in one order: no deal is left in a stage that is gone', async () => {
    const made = await Promise.all(Array.from({ length: 12 }, () => deal({ stage: 'proposal' })))
    const path = '/v1/pipelines/default'
    const { stages } = (await call('GET', path)).body
    const others = stages.filter(({ name }: { name: string }) => name !== 'proposal')
    const answers = await Promise.all([
      ...made.map(({ id }, i) =>
        change(id, { stage: i % 2 ? 'negotiation' : 'proposal', name: `Loom ${i}` }),
      ),
      call('PATCH', path, { stages: others, moves: { proposal: 'qualified' } }),
      ...made.map(() => call('POST', '/v1/objects/deals', { name: 'New', stage: 'proposal' })),
      ...made.map(({ id }) => change(id, { stage: 'proposal' })),
      call('PATCH', path, { label: 'Sales' }),
      ...made.map(({ id }) => call('POST', `/v1/objects/deals/${id}/revert`, { version: 1 })),
    ])
    assert.deepEqual(
      answers.filter(({ status }) => ![200, 201, 422].includes(status)).map(({ body }) => body),
      [],
    )
    assert.deepEqual(names(await call('GET', path)), ['lead', 'qualified', 'negotiation', 'won', 'lost'])
    const { data } = (await call('GET', '/v1/objects/deals?limit=200')).body
    assert.deepEqual(
      data.filter(({ stage }: { stage: string }) => !['qualified', 'negotiation'].includes(stage)),
      [],
    )
  })

  it('is offered by the schema, and known to workflows', async () => {
    await create(renewals)
    const { fields } = (await call('GET', '/v1/objects/deals/schema')).body
    const field = (name: string) => fields.find((one: { name: string }) => one.name === name)
    assert.deepEqual(field('pipeline').values, ['default', 'renewals'])
    assert.ok(field('stage').values.includes('offered'))
    assert.equal(field('stage').default, 'lead')
    const spec = (stage: string, filter: string, when: string) => `
name: Deals
trigger: {type: event, events: [deal.updated], when: "{{ trigger.record.stage == '${when}' }}"}
nodes:
  move: {type: crm_manager, config: {operation: update, entity: deals, id: "{{ trigger.record.id }}", fields: {stage: ${stage}}}, on_error: continue}
  find: {type: crm_manager, config: {operation: search, entity: deals, filters: {stage: ${filter}}}}`
    const validate = async (...stages: [string, string, string]) => {
      const { errors, warnings } = (await call('POST', '/v1/workflows/validate', { spec: spec(...stages) }))
        .body
      return [...errors, ...warnings]
        .map(({ code, path }: { code: string; path: string }) => [code, path])
        .filter(([code]) => ['invalid_value', 'impossible_comparison'].includes(code!))
        .toSorted()
    }
    assert.deepEqual(await validate('offered', 'renewed', 'due'), [])
    assert.deepEqual(await validate('offerd', 'renewd', 'dua'), [
      ['impossible_comparison', '/trigger/when'],
      ['invalid_value', '/nodes/find/config/filters/stage'],
      ['invalid_value', '/nodes/move/config/fields/stage'],
    ])
  })
})
