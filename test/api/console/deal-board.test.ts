import assert from 'node:assert/strict'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { withApi } from '../../support/with-api.ts'

const EVIL = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
const BOARD = '/records/deals/board'

describe('the board of deals in the console', () => {
  const suite = withApi()
  let owner: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
  })

  const create = async (body: object) => (await suite.api.request('POST', '/v1/objects/deals', { body })).body
  const find = async (id: string) => (await suite.api.request('GET', `/v1/objects/deals/${id}`)).body
  /** The HTML of a column. */
  const column = (html: string, stage: string) =>
    html.split('<section class="board-column"').find((part) => part.includes(`data-stage="${stage}"`)) ?? ''

  it('is empty at first, and has a column for each stage', async () => {
    const { html } = await owner.get(BOARD)
    for (const stage of ['lead', 'qualified', 'proposal', 'negotiation', 'won', 'lost'])
      assert.match(column(html, stage), /No deal/)
  })

  it('shows deals by stage with the sums of all, page by page', async () => {
    for (let i = 0; i < 12; i++)
      await create({ name: `Deal ${i}`, stage: 'lead', amount: '10.50', currency: 'EUR' })
    await create({ name: EVIL, stage: 'lead', amount: '1000', currency: 'USD' })
    const { html } = await owner.get(BOARD)
    const lead = column(html, 'lead')
    assert.match(textOf(lead), /13/)
    assert.match(lead, /126\.00 EUR/)
    assert.match(lead, /1,000\.00 USD/)
    assert.equal(lead.match(/data-deal=/g)!.length, 10)
    assert.doesNotMatch(html, /<script>alert|<img/)
    assert.ok(html.length < 60_000)
    const [, more] = /href="(\?[^"]*cursor_lead=[^"]*)"/.exec(lead)!
    const next = await owner.get(BOARD + more!.replaceAll('&amp;', '&'))
    assert.equal(column(next.html, 'lead').match(/data-deal=/g)!.length, 3)
  })

  it('moves a deal by the button of its card, and by the form with all stages', async () => {
    const { id } = await create({ name: 'Moves', stage: 'qualified' })
    const { html } = await owner.get(BOARD)
    const [, to] = new RegExp(`value="(${id} 1 proposal)"`).exec(column(html, 'qualified'))!
    const action = `${BOARD}?pipeline=default`
    const moved = await owner.post(action, { ...formOf(html, action), move: to! })
    assert.equal(moved.location, `${BOARD}?pipeline=default&done=moved`, textOf(moved.html))
    assert.equal((await find(id)).stage, 'proposal')
    const form = await owner.submit(`/records/deals/${id}/move`, action, { move: `${id} 2 won` })
    assert.equal(form.status, 303)
    assert.equal((await find(id)).outcome, 'won')
    const stale = await owner.post(action, { ...formOf(html, action), move: to!, idempotency_key: 'another' })
    assert.equal(stale.status, 412)
    assert.match(stale.html, /Somebody else has changed it/)
    assert.equal((await find(id)).stage, 'won')
  })

  it('says which field a stage requires, and leads to it', async () => {
    const { body: pipeline } = await suite.api.request('POST', '/v1/pipelines', {
      body: {
        name: 'renewals',
        label: 'Renewals',
        stages: [
          { name: 'due', label: 'Due', probability: 50 },
          { name: 'offered', label: 'Offered', probability: 80, required_fields: ['amount'] },
        ],
      },
    })
    const { id } = await create({ name: 'Renew', pipeline: pipeline.name, stage: 'due' })
    const action = `${BOARD}?pipeline=renewals`
    const { html, status } = await owner.submit(action, action, { move: `${id} 1 offered` })
    assert.equal(status, 422)
    assert.match(html, /is required by the stage offered/)
    assert.match(html, new RegExp(`href="/records/deals/${id}/edit"`))
    assert.match((await owner.get(BOARD)).html, /href="\/records\/deals\/board\?pipeline=renewals"/)
  })
})
