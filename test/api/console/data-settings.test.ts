import assert from 'node:assert/strict'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { formOf, textOf, type Visitor, visit } from '../../support/console.ts'
import { assertEscaped, EVIL } from '../../support/markup.ts'
import { withApi } from '../../support/with-api.ts'

describe('the settings of records in the console', () => {
  const suite = withApi()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
  })

  const api = async (method: string, path: string, body?: object) =>
    (await suite.api.request(method, `/v1${path}`, body ? { body } : {})).body

  describe('of custom fields', () => {
    const root = '/settings/custom-fields'

    it('make, change and delete one of each kind', async () => {
      for (const kind of kindNames) {
        const made = await owner.submit(`${root}/${kind}/new`, `${root}/${kind}`, {
          name: 'tier',
          type: 'select',
          label: EVIL,
          description: EVIL,
          options: 'gold\nsilver',
          default: 'silver',
        })
        assert.equal(made.location, `${root}/${kind}?done=created`, textOf(made.html))
        const { options, required, default: fallback } = await api('GET', `/custom-fields/${kind}/tier`)
        assert.deepEqual([options, required, fallback], [['gold', 'silver'], false, 'silver'])
        const path = `${root}/${kind}/fields/tier`
        for (const { html } of [await owner.get(`${root}/${kind}`), await owner.get(path)])
          assertEscaped(html)
        const saved = await owner.submit(path, path, { options: 'gold\nsilver\nbronze', required: 'true' })
        assert.equal(saved.location, `${root}/${kind}?done=saved`, textOf(saved.html))
        const changed = await api('GET', `/custom-fields/${kind}/tier`)
        assert.deepEqual(
          [changed.options, changed.required, changed.label, changed.version],
          [['gold', 'silver', 'bronze'], true, EVIL, 2],
        )
        assert.equal(
          (await owner.submit(path, `${path}/delete`, {})).location,
          `${root}/${kind}?done=removed`,
        )
        assert.equal((await owner.get(path)).status, 404)
      }
    })

    it('say what is wrong, and refuse what contradicts a stored value', async () => {
      const wrong = await owner.submit(`${root}/deals/new`, `${root}/deals`, {
        name: 'Not a name',
        type: 'select',
        options: 'a\nA',
      })
      assert.equal(wrong.status, 422)
      for (const field of ['name', 'options']) assert.match(wrong.html, new RegExp(`href="#f-${field}"`))
      assert.match(wrong.html, /a\nA<\/textarea>/)
      await api('POST', '/custom-fields/deals', { name: 'size', type: 'text', label: 'Size' })
      await api('POST', '/objects/deals', { name: 'Big', custom_fields: { size: 'huge' } })
      const path = `${root}/deals/fields/size`
      const refused = await owner.submit(path, path, { type: 'number' })
      assert.equal(refused.status, 409)
      assert.match(refused.html, /role="alert"/)
      const deleted = await owner.submit(path, `${path}/delete`, { delete_values: 'true' })
      assert.equal(deleted.location, `${root}/deals?done=removed`)
      const { data } = await api('GET', '/objects/deals')
      assert.deepEqual(data[0].custom_fields, {})
    })

    it('notice that another tab changed the field', async () => {
      await api('POST', '/custom-fields/tasks', { name: 'area', type: 'text', label: 'Area' })
      const path = `${root}/tasks/fields/area`
      const [first, second] = [
        formOf((await owner.get(path)).html, path),
        formOf((await owner.get(path)).html, path),
      ]
      assert.equal((await owner.post(path, { ...first, label: 'Region' })).status, 303)
      const late = await owner.post(path, { ...second, label: 'Zone' })
      assert.equal(late.status, 412)
      assert.match(late.html, /value="Zone"/)
      assert.equal((await api('GET', '/custom-fields/tasks/area')).label, 'Region')
    })

    it('of a kind that there is not do not exist', async () => {
      for (const path of [`${root}/unicorns`, `${root}/unicorns/new`, `${root}/deals/fields/none`])
        assert.equal((await owner.get(path)).status, 404, path)
    })
  })

  describe('of pipelines', () => {
    const root = '/settings/pipelines'
    const stagesOf = async (name: string) =>
      (await api('GET', `/pipelines/${name}`)).stages.map(
        ({ name, label, probability, outcome }: Record<string, unknown>) => [
          name,
          label,
          probability,
          outcome,
        ],
      )
    /** The columns of the form of stages, which a test changes by row. */
    async function columns(path: string) {
      const form = formOf((await owner.get(path)).html, path)
      const of = (name: string) => [...(form[`stage.${name}`] as string[])]
      return { form, of }
    }

    it('make one from a preset, rename, reorder and add stages', async () => {
      const made = await member.submit(`${root}/new`, root, {
        label: EVIL,
        name: 'renewals',
        preset: 'default',
      })
      assert.match(made.location!, /done=created$/, textOf(made.html))
      const path = made.location!.split('?')[0]!
      for (const page of [root, path]) assertEscaped((await owner.get(page)).html)
      const { form, of } = await columns(path)
      const [label, order, outcome, probability] = ['label', 'order', 'outcome', 'probability'].map(of)
      label![0] = 'First'
      order![1] = '0'
      label![6] = 'Trial'
      order![6] = '1'
      outcome![6] = 'open'
      probability![6] = '33'
      const saved = await owner.post(path, {
        ...form,
        'stage.label': label!,
        'stage.order': order!,
        'stage.outcome': outcome!,
        'stage.probability': probability!,
      })
      assert.equal(saved.location, `${path}?done=saved`, textOf(saved.html))
      assert.deepEqual((await stagesOf('renewals')).slice(0, 3), [
        ['qualified', 'Qualified', 25, 'open'],
        ['lead', 'First', 10, 'open'],
        ['trial', 'Trial', 33, 'open'],
      ])
    })

    it('ask where the deals of a removed stage go', async () => {
      const { id } = await api('POST', '/objects/deals', { name: 'Won over', stage: 'proposal' })
      const { id: pipeline } = (await api('GET', '/pipelines')).data.find(
        ({ name }: { name: string }) => name === 'default',
      )
      const path = `${root}/${pipeline}`
      const { form, of } = await columns(path)
      const becomes = of('becomes')
      const place = of('name').indexOf('proposal')
      becomes[place] = 'remove'
      const refused = await owner.post(path, { ...form, 'stage.becomes': becomes })
      assert.equal(refused.status, 409)
      assert.match(refused.html, /the stage proposal has 1 deal/)
      assert.match(refused.html, /<option value="remove" selected/)
      becomes[place] = 'negotiation'
      const again = formOf(refused.html, path)
      const moved = await owner.post(path, { ...again, 'stage.becomes': becomes })
      assert.equal(moved.location, `${path}?done=saved`, textOf(moved.html))
      assert.equal((await api('GET', `/objects/deals/${id}`)).stage, 'negotiation')
    })

    it('say which stage is wrong, and keep what was typed', async () => {
      const path = `${root}/${(await api('GET', '/pipelines/renewals')).id}`
      const { form, of } = await columns(path)
      const probability = of('probability')
      probability[0] = 'likely'
      const { status, html } = await owner.post(path, { ...form, 'stage.probability': probability })
      assert.equal(status, 422)
      assert.match(html, /href="#f-stages\.0">Stage “Qualified”/)
      assert.match(html, /value="likely"/)
    })

    it('become the default, and are deleted if their deals go elsewhere', async () => {
      const { id } = await api('GET', '/pipelines/renewals')
      const path = `${root}/${id}`
      await api('POST', '/objects/deals', { name: 'Renewed', pipeline: 'renewals' })
      const refused = await owner.submit(path, `${path}/delete`, {})
      assert.equal(refused.status, 409)
      assert.match(refused.html, /has 1 deal/)
      const target = (await api('GET', '/pipelines/default')).id
      assert.equal(
        (await owner.submit(path, `${path}/delete`, { move_to: target })).location,
        `${root}?done=removed`,
      )
      const made = await owner.submit(`${root}/new`, root, { label: 'New', name: 'fresh', preset: 'hubspot' })
      const fresh = made.location!.split('?')[0]!
      assert.equal((await owner.submit(fresh, `${fresh}/default`, {})).location, `${fresh}?done=saved`)
      assert.equal((await api('GET', '/pipelines/fresh')).is_default, true)
      assert.doesNotMatch((await owner.get(fresh)).html, /\/delete"/)
    })
  })

  describe('of exchange rates', () => {
    const root = '/settings/exchange-rates'
    const rateOf = async (currency: string) =>
      (await api('GET', '/exchange-rates')).data.find(
        (one: { currency: string }) => one.currency === currency,
      )

    it('set one, and take it away', async () => {
      const set = await member.submit(root, root, { currency: 'CHF', rate: '1.25' })
      assert.equal(set.location, `${root}?done=saved`, textOf(set.html))
      assert.deepEqual([(await rateOf('CHF')).rate, (await rateOf('CHF')).source], ['1.25', 'own'])
      const removed = await member.submit(root, `${root}/remove`, {})
      assert.equal(removed.location, `${root}?done=removed`)
      assert.equal((await rateOf('CHF')).source, 'shipped')
    })

    it('say what is wrong with a rate and a day', async () => {
      const { status, html } = await owner.submit(root, root, { currency: 'CHF', rate: 'much' })
      assert.equal(status, 422)
      assert.match(html, /href="#f-rate"/)
      assert.match(html, /value="much"/)
      const day = await owner.get(`${root}?day=yesterday`)
      assert.equal(day.status, 422)
      assert.match(day.html, /role="alert"/)
    })
  })
})
