import assert from 'node:assert/strict'
import { recordCalls } from '../support/record-calls.ts'
import { withApiAndWorker } from '../support/with-api.ts'

/** Line items in files and workflows: the amounts of their deals follow there, too. */
describe('line items', function () {
  this.timeout(120_000)
  const { call, ended, imported, exported } = recordCalls(withApiAndWorker())
  const amounts = async () => {
    const { data } = await call('GET', '/objects/deals?sort=external_id&order=asc')
    return data.map(({ amount, currency }: Record<string, unknown>) => amount && `${amount} ${currency}`)
  }

  it('are imported with their deals and products, exported, and imported again without a change', async () => {
    await call('POST', '/objects/products', { name: 'Maintenance', unit_price: '90', currency: 'CHF' })
    for (const external_id of ['D-1', 'D-2'])
      await call('POST', '/objects/deals', { name: 'Deal', external_id })
    const file = [
      'Line item ID,Deal external ID,Product name,Name,Quantity,Unit price,Discount,Tax,Billing frequency',
      'L-1,D-1,Maintenance,,12,,10 %,8.1 %,month',
      'L-2,D-1,,Set-up,1,CHF 250.50,,8.1,',
      'L-3,D-2,,Loom,"2.5","$1,000.00",,,year',
      'L-4,D-2,,Loom,1,EUR 5,,,',
      'L-5,D-2,,Loom,many,$5,,,',
    ].join('\n')
    const settings = { entity: 'line_items', mode: 'upsert', by: 'external_id' }
    const mapping = {
      'Line item ID': 'external_id',
      'Deal external ID': 'deal_external_id',
      'Product name': 'product_name',
      Name: 'name',
      Quantity: 'quantity',
      'Unit price': 'unit_price',
      Discount: 'discount_percent',
      Tax: 'tax_percent',
      'Billing frequency': 'recurring_interval',
    }
    const { done, errors } = await imported({ ...settings, mapping }, file)
    assert.deepEqual([done.progress.created, done.progress.failed], [3, 2], errors)
    assert.match(errors, /L-4.*one currency/)
    assert.match(errors, /L-5.*Quantity/)
    assert.deepEqual(await amounts(), ['1222.50 CHF', '2500.00 USD'])

    const before = await call('GET', '/objects/line_items?limit=200')
    const again = await imported(settings, await exported('line_items'))
    assert.equal(again.done.progress.failed, 0, again.errors)
    assert.deepEqual(await call('GET', '/objects/line_items?limit=200'), before)

    const undone = await call('POST', `/imports/${done.id}/undo`, { confirm: true })
    await ended(`/bulk-jobs/${undone.id}`)
    assert.deepEqual(await amounts(), [null, null])
  })

  it('are made by workflows', async () => {
    const { id } = await call('POST', '/objects/deals', { name: 'Deal', external_id: 'D-3' })
    const { workflow_id } = await call('POST', '/workflows', {
      spec: `name: Sell
inputs: {deal: string}
nodes:
  add: {type: crm_manager, config: {operation: create, entity: line_items, fields: {deal_id: "{{ inputs.deal }}", name: Loom, quantity: 3, unit_price: "1.10"}}}
`,
    })
    const { run_id } = await call('POST', `/workflows/${workflow_id}/run`, {
      inputs: { deal: id },
      confirm: true,
    })
    const run = await ended(`/runs/${run_id}`)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    const deal = await call('GET', `/objects/deals/${id}`)
    assert.deepEqual([deal.amount, deal.updated_by.type], ['3.30', 'workflow_run'])
  })
})
