import assert from 'node:assert/strict'
import type { Route } from '../../api/http/route.ts'
import { allows, type Scope } from '../../api/http/scopes.ts'
import { routes } from '../../api/v1/route-table.ts'
import { matchEvents } from '../../db/events/match.ts'
import { insertEvents } from '../../db/events/outbox.ts'
import { kindNames } from '../../workflows/shared/record-kinds.ts'
import { createKey } from '../support/api.ts'
import { testActor } from '../support/database.ts'
import { withApi } from '../support/with-api.ts'

/**
 * The scopes that operations on a row need besides the scope of their route: derived from what the row gives access
 * to, not from the route table. The first pattern that matches the path; a new operation below it is tested by itself.
 */
const RESOURCES: { path: RegExp; read: Scope[]; change: Scope[] }[] = [
  // The payloads of the log are the data of records.
  {
    path: /^\/webhooks\/incoming\/\{webhook_id\}\/logs/,
    read: ['contacts:read'],
    change: ['contacts:write'],
  },
  // The requests of the webhook write contacts, with their companies and notes, and start its workflow.
  {
    path: /^\/webhooks\/incoming\/\{webhook_id\}/,
    read: [],
    change: ['contacts:write', 'companies:write', 'notes:write', 'workflows:run'],
  },
  // The events of the webhook contain contacts.
  { path: /^\/webhooks\/outgoing\/\{webhook_id\}/, read: [], change: ['contacts:read'] },
  { path: /^\/deliveries\/\{delivery_id\}/, read: ['contacts:read'], change: ['contacts:read'] },
]

const UNKNOWN = '01890a5d-ac96-774b-bcce-b302099a8057'

/** Bodies that reach the handler. */
const BODIES: Record<string, (ids: Record<string, string>) => object> = {
  retargetDelivery: ({ other_id }) => ({ webhook_id: other_id }),
  createIncomingReplay: ({ log_id }) => ({ log_id, dry_run: true }),
  updateOutgoingWebhook: () => ({ name: 'Renamed' }),
  // Without a worker, a test would not end.
  testWorkflow: () => ({ workflow_id: UNKNOWN, cases: [{ name: 'any' }] }),
  rescheduleDelivery: () => ({ at: new Date(Date.now() + 3_600_000).toISOString() }),
}

describe('every route on a row that gives access to more', () => {
  const suite = withApi()

  let shared: Record<string, string>
  before(async () => {
    shared = await rows()
  })

  /** Rows of each resource. */
  async function rows(): Promise<Record<string, string>> {
    const { api, db } = suite
    const post = async (path: string, body: object) => {
      const answer = await api.request('POST', `/v1${path}`, { body })
      assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
      return answer.body
    }
    const { workflow_id } = await post('/workflows', { spec: SPEC })
    const incoming = await post('/webhooks/incoming', { name: 'Form', workflow_id })
    await api.request('POST', `/webhooks/incoming/${incoming.id}`, {
      key: null,
      headers: { 'X-Webhook-Secret': incoming.secret },
      body: { email: 'ada@example.com' },
    })
    const { data: logs } = (await api.request('GET', `/v1/webhooks/incoming/${incoming.id}/logs`)).body
    const outgoing = await post('/webhooks/outgoing', HOOK)
    const other = await post('/webhooks/outgoing', { ...HOOK, events: ['webhook.disabled'] })
    await db.tenant(api.organizationId, testActor, (tx) =>
      insertEvents(tx, [{ name: 'contact.created', data: { id: 'x' } }]),
    )
    await matchEvents(db.system)
    const { data } = (await api.request('GET', `/v1/webhooks/outgoing/${outgoing.id}/deliveries`)).body
    return {
      incoming_id: incoming.id,
      outgoing_id: outgoing.id,
      other_id: other.id,
      log_id: logs[0].id,
      delivery_id: data[0].id,
      replay_id: UNKNOWN,
    }
  }

  const guarded = routes.flatMap((route) => {
    const resource = RESOURCES.find(({ path }) => path.test(route.path))
    const further = resource && (route.method === 'GET' ? resource.read : resource.change)
    return further && further.length > 0 ? [{ route, further }] : []
  })

  for (const { route, further } of guarded)
    it(`${route.method} ${route.path} needs ${further.join(' and ')}`, async () => {
      const ids = route.method === 'DELETE' ? await rows() : shared
      const own = [route.scope].flat() as Scope[]
      for (const missing of further) {
        const refused = await send(route, ids, [...own, ...further.filter((scope) => scope !== missing)])
        assert.deepEqual(
          [refused.status, refused.body.error?.message],
          [403, `the key lacks the scope ${missing}`],
        )
      }
      const { status, body } = await send(route, ids, [...own, ...further])
      assert.ok(![403, 422].includes(status), `${status} ${JSON.stringify(body)}`)
    })

  it('are more than a few', () => assert.ok(guarded.length > 25, String(guarded.length)))

  it('and no other route, with its own scope alone, returns what another scope protects', async () => {
    const ids = await rows()
    const { api, db } = suite
    const post = async (path: string, body: object) =>
      (await api.request('POST', `/v1${path}`, { body })).body
    const word = (kind: string) => `marked${kind}`
    const fields: Record<string, object> = {
      contacts: { last_name: word('contacts'), email: 'marked@example.com' },
      companies: { name: word('companies') },
      deals: { name: word('deals') },
      tasks: { title: word('tasks') },
      notes: { body: word('notes') },
      activities: { type: 'call', subject: word('activities') },
      products: { name: word('products') },
      line_items: { name: word('line_items'), unit_price: '1' },
      consents: { purpose: word('consents'), state: 'granted' },
    }
    for (const [kind, values] of Object.entries(fields)) {
      const owner = kind === 'consents' ? { contact_id: ids.contacts } : {}
      ids[kind] = (await post(`/objects/${kind}`, { ...values, ...owner })).id
    }
    await post(`/objects/contacts/${ids.contacts}/associations/companies/${ids.companies}`, {})
    const { workflow_id } = await post('/workflows', {
      spec: SPEC.replace('nodes:', 'inputs: {a: string}\nnodes:'),
    })
    const run = await post(`/workflows/${workflow_id}/run`, {
      inputs: { a: word('workflows') },
      confirm: true,
    })
    const collection = await post('/knowledge/collections', { name: 'Marked' })
    const document = await post(`/knowledge/collections/${collection.id}/documents`, {
      title: word('knowledge'),
      body: word('knowledge'),
    })
    await post('/custom-fields/contacts', { name: 'ssn', type: 'text', sensitive: true })
    await api.request('PATCH', `/v1/objects/contacts/${ids.contacts}`, {
      body: { custom_fields: { ssn: word('reveal') } },
    })
    const byWord = { q: word('contacts') }
    const view = await post('/views', { entity: 'contacts', name: 'Marked', shared: true, query: byWord })
    const list = await post('/lists', { entity: 'contacts', name: 'Marked', type: 'filter', query: byWord })
    const report = await post('/analytics/reports', exampleOf('createReport'))
    const job = await post('/objects/contacts/bulk', { action: 'delete', query: byWord, confirm: true })
    Object.assign(ids, {
      view_id: view.id,
      list_id: list.id,
      report_id: report.id,
      job_id: job.id,
      import_id: (await post('/imports', { entity: 'contacts' })).id,
      export_id: (await post('/exports', { entity: 'contacts', query: byWord })).id,
      pipeline_id: (await post('/pipelines', exampleOf('createPipeline'))).id,
      workflow_id,
      run_id: run.run_id,
      document_id: document.id,
      collection_id: collection.id,
    })
    const holders: Record<string, Scope> = Object.fromEntries([
      ...Object.keys(fields).map((kind) => [word(kind), `${kind}:read`]),
      [word('workflows'), 'workflows:run'],
      [word('knowledge'), 'knowledge:read'],
      [word('reveal'), 'records:reveal'],
    ])
    const seen = new Set<string>()
    const order = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
    for (const route of routes.toSorted((a, b) => order.indexOf(a.method) - order.indexOf(b.method))) {
      if ('stream' in route.response || route.accepts) continue
      for (const kind of /\{entity\}/.test(route.path) ? kindNames : ['contacts']) {
        const params = { entity: kind, target: 'companies', entity_id: ids[kind]!, target_id: ids.companies! }
        const path = filled(route, { ...NAMES, ...ids, ...params })
        const held = scopesAt(route, params)
        const { key } = await createKey(db, api.organizationId, { scopes: held })
        // Without confirmation: no worker runs.
        const { confirm: _, ...body } = {
          ...(route.example as { confirm?: boolean }),
          ...BODIES[route.id.replace(/WithKey$/, '')]?.(ids),
        }
        const answer = await api.request(route.method, `/v1${path}`, { key, ...(route.body ? { body } : {}) })
        const text = JSON.stringify(answer.body)
        for (const [marked, scope] of Object.entries(holders)) {
          if (!text.includes(marked)) continue
          seen.add(marked)
          assert.ok(
            allows(new Set(held), scope),
            `${route.method} ${path} with ${held}: ${text.slice(0, 500)}`,
          )
        }
      }
    }
    assert.deepEqual([...seen].sort(), Object.keys(holders).sort(), 'each can be read by its own scope')
  })

  async function send(route: Route, ids: Record<string, string>, scopes: Scope[]) {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes })
    const webhook = route.path.includes('/incoming/') ? ids.incoming_id : ids.outgoing_id
    const path = filled(route, { ...ids, webhook_id: webhook! })
    const body = BODIES[route.id.replace(/WithKey$/, '')]?.(ids) ?? route.example
    return suite.api.request(route.method, `/v1${path}`, { key, ...(body ? { body } : {}) })
  }
})

const exampleOf = (id: string) => routes.find((route) => route.id === id)!.example as object

/** Parameters that need no row. */
const NAMES = {
  name: 'tier',
  node_type: 'delay',
  node_id: 'a',
  template_id: 'deal-won-onboarding',
  version: '1',
  webhook_id: UNKNOWN,
  batch_id: UNKNOWN,
  erasure_id: UNKNOWN,
  file_id: UNKNOWN,
}

const filled = ({ path }: Route, values: Record<string, string>) =>
  path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? assert.fail(`{${name}} of ${path}`))

/** The scopes that a route declares for these parameters. */
function scopesAt({ scope }: Route, params: object): Scope[] {
  if (typeof scope === 'function') return scope(params)
  if (typeof scope === 'object' && !Array.isArray(scope)) return []
  return [scope].flat().filter((one) => one !== 'any')
}

const HOOK = { name: 'Zap', url: 'https://example.com/hook', events: ['contact.*'] }
const SPEC = 'name: Greet\nnodes:\n  a: {type: set_fields, config: {fields: {x: 1}}}\n'
