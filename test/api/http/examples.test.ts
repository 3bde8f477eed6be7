import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { appRoutes } from '../../../api/app/route-table.ts'
import { type OpenApi, type Operation, openApi } from '../../../api/http/openapi.ts'
import { title } from '../../../api/v1/record-shapes.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { newLinkToken } from '../../../db/access/link-tokens.ts'
import { findSession, openSession } from '../../../db/access/sessions.ts'
import { createUser } from '../../../db/access/users.ts'
import { referencesOf } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { hashPassword } from '../../../db/process/passwords.ts'
import type { Answer } from '../../support/answer.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { createNormalizer } from '../../support/normalize.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

/** With RECORD_EXAMPLES=1 the test writes the file; otherwise it compares with it. */
const FILE = new URL('../../../api/http/openapi-examples.json', import.meta.url)
const LOOP = `name: Each
nodes:
  each: { type: for_each, config: { items: [Ada, Bob] } }
  greet: { type: set_fields, config: { fields: { text: "Hello {{ item }}" } } }
`
const NIGHTLY = `name: Nightly
trigger: { type: schedule, cron: "0 3 * * *", timezone: Asia/Tokyo, overlap: skip }
nodes: { say: { type: set_fields, config: { fields: { text: Hello } } } }
`
const RECEIVER = 'receiveWebhook'
/** Its example is sent by test/api/mcp/protocol.test.ts. */
const MCP = 'callMcp'
/** Its examples are in the document; its answers are checked by test/api/incoming/set-up.test.ts. */
const CHALLENGE = 'answerWebhookChallenge'

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = Record<string, any>

interface Call {
  params?: Record<string, string>
  query?: string
  /** Default: the example of the document. */
  body?: unknown
  headers?: Record<string, string>
  /** The response is a preview: 200 where the operation answers 201. */
  preview?: true
}

/** The start of a replay's period. */
const SINCE = '2026-01-01T00:00:00.000Z'

const document: OpenApi = await openApi(routes, appRoutes, '/')
const operations = new Map<string, { method: string; path: string; operation: Operation }>(
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [
      operation.operationId,
      { method: method.toUpperCase(), path, operation },
    ]),
  ),
)

describe('the example responses of the document', () => {
  const suite = withApi({
    SIGN_UP: 'open',
    PLAN_CHANGES: 'open',
    ALLOW_INSECURE_WEBHOOKS: 'true',
    EGRESS_ALLOW: '127.0.0.0/8',
  })
  let worker: TestWorker | undefined
  let receiver: Receiver
  let session: Record<string, string> = {}
  const answers: Record<string, unknown> = {}
  const normalize = createNormalizer()

  before(async () => {
    receiver = await startReceiver()
  })
  after(async () => {
    await worker?.stop()
    receiver?.close()
  })

  /** Calls an operation with the example of its request. */
  async function call(
    id: string,
    { params = {}, query = '', body, headers = {}, preview }: Call = {},
  ): Promise<Json> {
    const { method, path, operation } = operations.get(id)!
    const [type, media] =
      Object.entries((operation.requestBody?.content ?? {}) as Record<string, Json>)[0] ?? []
    const sent = body === undefined ? media?.example : body
    const isSession = path.startsWith('/app')
    const answer: Answer = await suite.api.request(
      method,
      path.replace(/\{(\w+)\}/g, (_, name) => params[name] ?? assert.fail(`${id} needs ${name}`)) + query,
      {
        ...(sent === undefined ? {} : { body: sent }),
        ...(isSession || id === RECEIVER ? { key: null } : {}),
        headers: { ...(type ? { 'Content-Type': type } : {}), ...(isSession ? session : {}), ...headers },
      },
    )
    const declared = Object.keys(operation.responses).filter((status) => /^2\d\d$/.test(status))
    const expected = preview ? '200' : declared.at(-1)
    assert.equal(String(answer.status), expected, `${id}: ${JSON.stringify(answer.body)}`)
    // A new session, or a new cookie of the session.
    if (isSession && answer.body.csrf_token && answer.headers.has('set-cookie'))
      session = {
        Cookie: answer.headers.get('set-cookie')!.split(';')[0]!,
        'X-CSRF-Token': answer.body.csrf_token,
      }
    return answer.body
  }

  /** Like `call`, and records the response as the example. */
  async function example(id: string, options: Call = {}): Promise<Json> {
    const answer = await call(id, options)
    const name = options.preview ? `${id}Preview` : id
    assert.ok(!(name in answers), `${id} is called twice`)
    answers[name] = normalize(shortened(answer))
    return answer
  }

  const untilAnswer = (id: string, options: Call, isThere: (answer: Json) => boolean) =>
    until(async () => isThere(await call(id, options)), id)

  it('equal the answers of a running API to the example requests', async () => {
    await account()
    const contact = await records()
    await customFields()
    await pipelines()
    await views()
    await members()
    await keys()
    await secrets()
    await mailSuppressions()
    const workflow = await workflows()
    await incoming(workflow)
    const task = await outgoing()
    await attached(contact)
    const imported = await files()
    worker = await startWorker(suite.db, { secretsKey: suite.api.secretsKey })
    await runs(workflow)
    await analytics()
    await bulkJobs()
    await filesDone(imported)
    await deliveries(task)
    await example('deleteContact', { params: { entity_id: contact } })
    await example('deleteOutgoingWebhook', { params: { webhook_id: outgoingId } })
    await example('updateOrganization')
    await example('changePlan')
    await grants()
    await example('signOut')
    await signUps()
    await knowledge()
    await schedules()
    await lists()

    const previews = Object.keys(answers).filter((name) => name.endsWith('Preview') && !operations.has(name))
    const twins = [...routes, ...appRoutes].filter(({ exampleOf }) => exampleOf).map(({ id }) => id)
    assert.deepEqual(
      [...Object.keys(answers), ...twins].sort(),
      [...operations.keys(), ...previews].filter((id) => id !== MCP && id !== CHALLENGE).sort(),
      'every operation was called, or has the handler or answer of one that was',
    )
    const { [RECEIVER]: received, ...recorded } = answers
    const [, shown] = Object.entries<Json>(operations.get(RECEIVER)!.operation.responses)[0]!
    assert.deepEqual(Object.keys(received as object), Object.keys(shown.content['application/json'].example))
    if (process.env.RECORD_EXAMPLES) writeFileSync(FILE, `${JSON.stringify(recorded, null, 2)}\n`)
    const stored = JSON.parse(readFileSync(FILE, 'utf8'))
    for (const [id, answer] of Object.entries(recorded))
      assert.deepEqual(answer, stored[id], `${id}: record the examples again with RECORD_EXAMPLES=1`)
    assert.deepEqual(Object.keys(stored).sort(), Object.keys(recorded).sort())
  })

  it('fit their schemas', () => {
    const $defs = JSON.parse(
      JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    let checked = 0
    for (const { operation } of operations.values())
      for (const response of Object.values<Json>(operation.responses))
        for (const [type, { schema, example: own, examples }] of Object.entries<Json>(
          response.content ?? {},
        )) {
          if (type !== 'application/json') continue
          const reference = examples?.response.$ref.split('/').at(-1)
          const value = own ?? (document.components.examples[reference] as Json).value
          const local = JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/'))
          const issues = z.fromJSONSchema({ ...local, $defs }).safeParse(value).error?.issues ?? []
          assert.deepEqual(issues, [], operation.operationId)
          checked++
        }
    assert.ok(checked >= operations.size - 2, `${checked} were checked`)
  })

  async function account() {
    const { db, api } = suite
    const { organizationId } = api
    const userId = await createUser(db.system, {
      email: 'ada@example.com',
      password: 'correct horse battery staple',
      name: 'Ada Lovelace',
      organizationId,
      role: 'owner',
    })
    await example('signIn')
    await example('listSessions', { query: '?limit=1' })
    const phone = await findSession(db.system, (await openSession(db.system, userId, organizationId)).token)
    await example('endSession', { params: { session_id: phone!.id } })
    await example('switchOrganization', { body: { organization_id: organizationId } })
    for (const id of [
      'getSession',
      'getOrganization',
      'getUsage',
      'getMe',
      'listScopes',
      'listUsers',
      'listEvents',
    ])
      await example(id)
    for (const id of ['listObjectTypes', 'listNodeTypes']) await example(id)
    await example('getNodeType', { params: { node_type: 'delay' } })
    await example('getAuthoringGuide', { query: '?topic=inputs' })
    await example('listTemplates', { query: '?search=slack&limit=1' })
    await example('getTemplate', { params: { template_id: 'welcome-series' } })
    await example('importTemplate')
  }

  async function signUps() {
    await example('signUp')
    // Simulates that the service sends mails.
    const { token, hash } = newLinkToken()
    await suite.db.system('sign_ups').insert({
      token_hash: hash,
      email: 'grace@acme.example',
      name: 'Grace Hopper',
      organization_name: 'Acme',
      password_hash: await hashPassword('correct horse battery staple'),
      expires_at: new Date(Date.now() + 60_000),
    })
    await example('confirmSignUp', { params: { token } })
  }

  /** @returns the id of the contact. */
  async function records(): Promise<string> {
    const ids: Record<string, string> = {}
    for (const kind of kindNames) {
      const singular = title(kinds[kind].object)
      const plural = title(kind)
      const given = { ...kinds[kind].example }
      for (const [name, { required, to }] of referencesOf(kinds[kind])) if (required) given[name] = ids[to]
      const { id } = await example(`create${singular}`, { body: given })
      ids[kind] = id
      const params = { entity_id: id }
      await call(`get${singular}`, { params })
      await example(`list${plural}`, { query: '?limit=1' })
      await example(`update${singular}`, { params })
      await example(`get${singular}Schema`)
      // There is one for each key.
      const [, apart] = kinds[kind].identity ?? []
      const data = { ...given, ...(apart && { [apart]: 'another' }) }
      const { results } = await example(`batch${plural}`, { body: { operations: [{ op: 'create', data }] } })
      if (operations.has(`merge${singular}`))
        await call(`merge${singular}`, { params, body: { from: results[0].id } })
      if (kind === 'contacts') await call('deleteContact', { params })
      else await example(`delete${singular}`, { params })
      await call(`restore${singular}`, { params })
    }
    const params = {
      entity: 'contacts',
      entity_id: ids.contacts!,
      target: 'companies',
      target_id: ids.companies!,
    }
    await example('createAssociation', { params })
    await example('listAssociatedRecords', { params })
    await example('deleteAssociation', { params })
    await example('listRecordHistory', { params, query: '?limit=1' })
    await example('listTimeline', { params, query: '?types=note,change&limit=2' })
    await example('revertRecord', { params })
    await example('exportContact', { params })
    await call('createCustomField', {
      params: { entity: 'contacts' },
      body: { name: 'tax_id', type: 'text', sensitive: true },
    })
    await call('updateContact', {
      params: { entity_id: ids.contacts! },
      body: { custom_fields: { tax_id: 'DE123456789' } },
    })
    await example('revealSensitiveValues', { params })
    for (const email of ['same@example.com', 'SAME@example.com'])
      await call('createContact', { body: { email } })
    await example('listContactDuplicates')
    await example('listCompanyDuplicates')
    return ids.contacts!
  }

  async function customFields() {
    const params = { entity: 'contacts', name: 'tier' }
    await example('createCustomField', { params })
    await example('getCustomField', { params })
    await example('listCustomFields', { params })
    await example('updateCustomField', { params })
    await example('deleteCustomField', { params })
  }

  async function pipelines() {
    const { id: pipeline_id } = await example('createPipeline')
    const params = { pipeline_id }
    await example('listPipelines')
    await example('getPipeline', { params })
    await example('updatePipeline', { params })
    await example('deletePipeline', { params })
    await example('setExchangeRates')
    await example('listExchangeRates')
  }

  async function views() {
    const { id: view_id } = await example('createView')
    const params = { view_id }
    await example('listViews')
    await example('getView', { params })
    await example('updateView', { params })
    await example('deleteView', { params })
  }

  async function lists() {
    const { id: list_id } = await example('createList')
    const params = { list_id }
    await untilAnswer('getList', { params }, ({ status }) => status === 'ready')
    await example('listLists')
    await example('getList', { params })
    await example('updateList', { params })
    await example('deleteList', { params })
    const fixed = await call('createList', { body: { entity: 'contacts', name: 'Guests', type: 'static' } })
    const contact = await call('createContact')
    const body = { add: [contact.id] }
    await example('changeListMembers', { params: { list_id: fixed.id }, body })
  }

  async function members() {
    await example('getPreferences')
    await example('updatePreferences')
    await example('listMembers', { query: '?limit=1' })
    const { id } = await example('createInvitation')
    await example('listInvitations', { query: '?limit=1' })
    await example('withdrawInvitation', { params: { invitation_id: id } })
    const { token } = await call('createInvitation')
    const owner = session
    const { user } = await example('acceptInvitation', { params: { token }, headers: { Cookie: 'none=1' } })
    session = owner
    const params = { user_id: user.id }
    await example('updateMember', { params })
    await example('requestPasswordReset')
    const reset = await example('createPasswordReset', { params })
    await example('resetPassword', { params: { token: reset.token } })
    await example('removeMember', { params })
    await example('listAuditLog', { query: '?limit=1' })
  }

  async function keys() {
    const { id } = await example('createKey')
    const params = { key_id: id }
    await example('getKey', { params })
    await example('listKeys', { query: '?limit=1' })
    await example('updateKey', { params })
    await example('rotateKey', { params })
    await example('revokeKey', { params })
  }

  async function grants() {
    const route = appRoutes.find(({ id }) => id === 'createGrant')!
    const { scopes: _, ...asked } = route.example as Record<string, string> & { scopes: string[] }
    await suite.db.system('oauth_clients').insert({
      id: asked.client_id,
      name: 'Claude',
      redirect_uris: [asked.redirect_uri],
      expires_at: new Date(Date.now() + 600_000),
    })
    await example('getAuthorization', {
      query: `?${new URLSearchParams({ ...asked, scope: 'contacts:read' })}`,
    })
    const { id: grant_id } = await example('createGrant')
    await suite.db.system('oauth_grants').update({ code_used_at: new Date() })
    await example('listGrants', { query: '?limit=1' })
    await example('revokeGrant', { params: { grant_id } })
  }

  async function secrets() {
    const params = { name: 'stripe_key' }
    await example('putSecret', { params })
    await example('listSecrets', { query: '?limit=1' })
    await example('deleteSecret', { params })
  }

  async function mailSuppressions() {
    const { id } = await example('addMailSuppression')
    await example('listMailSuppressions', { query: '?limit=1' })
    await example('removeMailSuppression', { params: { suppression_id: id } })
  }

  async function knowledge() {
    const { id: collection_id } = await example('createKnowledgeCollection')
    const params = { collection_id }
    const { id: document_id } = await example('createKnowledgeDocument', { params })
    await example('getKnowledgeCollection', { params })
    await example('listKnowledgeCollections')
    await example('updateKnowledgeCollection', { params })
    await example('listKnowledgeDocuments', { params })
    await example('getKnowledgeDocument', { params: { document_id } })
    await example('updateKnowledgeDocument', { params: { document_id } })
    await example('searchKnowledge', { query: '?q=refund%20days&limit=1' })
    await example('setKnowledgeEmbedding', { params })
    const markdown = '# Hours\n\nThe shop is open on weekends.'
    const headers = { 'Content-Type': 'text/markdown' }
    await example('uploadKnowledgeDocument', { params, query: '?title=Hours', body: markdown, headers })
    const site = await startHttpServer((_, response) => response.writeHead(200, headers).end(markdown))
    const body = { url: `${site.url}/hours.md`, title: 'Hours', tags: ['service'] }
    await example('fetchKnowledgeDocument', { params, body })
    await site.close()
    await example('deleteKnowledgeEmbedding', { params })
    await example('deleteKnowledgeDocument', { params: { document_id } })
    await example('deleteKnowledgeCollection', { params })
  }

  /** @returns the id of an active workflow. */
  async function workflows(): Promise<string> {
    await example('validateWorkflow')
    const { workflow_id, spec } = await example('createWorkflow')
    const params = { workflow_id }
    await example('getWorkflow', { params })
    await example('listWorkflows')
    await example('updateWorkflow', { params })
    await example('listWorkflowVersions', { params })
    await example('getWorkflowVersion', { params: { ...params, version: '1' } })
    await example('diffWorkflowVersions', { params: { ...params, version: '2' } })
    await example('restoreWorkflowVersion', { params: { ...params, version: '1' } })
    const copy = await example('duplicateWorkflow', { params })
    await call('deleteWorkflow', { params: { workflow_id: copy.workflow_id } })
    await example('activateWorkflow', { params })
    await example('deactivateWorkflow', { params })
    await example('deleteWorkflow', { params })
    const welcome = await call('createWorkflow', { body: { name: 'Welcome', spec } })
    const { run_id } = await call('runWorkflow', { params: { workflow_id: welcome.workflow_id } })
    for (const id of ['pauseRun', 'resumeRun', 'cancelRun']) await example(id, { params: { run_id } })
    const other = await call('runWorkflow', { params: { workflow_id: welcome.workflow_id } })
    const changed = spec.replace('name:', 'description: The second version.\nname:')
    await call('updateWorkflow', { params: { workflow_id: welcome.workflow_id }, body: { spec: changed } })
    await example('migrateRun', { params: { run_id: other.run_id } })
    await example('terminateRun', { params: { run_id: other.run_id } })
    return welcome.workflow_id
  }

  async function schedules() {
    const { workflow_id } = await call('createWorkflow', { body: { spec: NIGHTLY } })
    const params = { workflow_id }
    await call('activateWorkflow', { params })
    await example('pauseSchedule', { params })
    const [from, to] = [new Date(Date.now() - 86_399_999), new Date()]
    // A paused schedule keeps the time waiting: no worker changes it meanwhile.
    await example('backfillWorkflow', { params, body: { from, to, confirm: true } })
    await example('getSchedule', { params })
    await example('resumeSchedule', { params })
    await call('deleteWorkflow', { params })
  }

  async function incoming(workflow_id: string) {
    await example('listIncomingWebhooks', { query: '?limit=1' })
    await example('listIncomingWebhookSenders')
    const { id, secret } = await example('createIncomingWebhook')
    const params = { webhook_id: id }
    await example('getIncomingWebhook', { params })
    await example('testIncomingWebhook', { params })
    await example(RECEIVER, { params, headers: { 'X-Webhook-Secret': secret } })
    const { data } = await example('listIncomingWebhookLogs', { params })
    await example('getIncomingWebhookLog', { params: { ...params, log_id: data[0].id } })
    // The filter selects no rows, because rows have a duration.
    await example('exportIncomingWebhookLogs', { params, query: '?status=Blocked' })
    await example('proposeIncomingMapping', { params })
    await example('previewIncomingMapping', { params })
    await example('captureIncomingWebhookSample', { params })
    await example('createIncomingReplay', { params, preview: true, body: { since: SINCE, dry_run: true } })
    const { id: replay_id } = await example('createIncomingReplay', { params })
    for (const verb of ['pause', 'resume', 'get', 'stop'])
      await example(`${verb}IncomingReplay`, { params: { ...params, replay_id } })
    await example('updateIncomingWebhook', { params })
    await call('updateIncomingWebhook', {
      params,
      body: { workflow_id, workflow_inputs: { email: 'payload.email' } },
    })
    await example('deactivateIncomingWebhook', { params })
    await example('activateIncomingWebhook', { params })
    await example('rotateIncomingWebhookSecret', { params })
    await example('deleteIncomingWebhook', { params })
  }

  let outgoingId = ''

  /** @returns the id of a task whose completion is delivered. */
  async function outgoing(): Promise<string> {
    const { id } = await example('createOutgoingWebhook')
    outgoingId = id
    const params = { webhook_id: id }
    await example('getOutgoingWebhook', { params })
    await example('listOutgoingWebhooks', { query: '?limit=1' })
    await example('updateOutgoingWebhook', { params })
    await example('deactivateOutgoingWebhook', { params })
    await example('activateOutgoingWebhook', { params })
    await example('rotateOutgoingWebhookSecret', { params })
    const test = await example('testOutgoingWebhook', { params })
    await example('cancelDelivery', { params: { delivery_id: test.id } })
    await example('createReplay', { params, preview: true, body: { since: SINCE, dry_run: true } })
    const { id: replay_id } = await example('createReplay', { params })
    for (const operation of ['pauseReplay', 'resumeReplay', 'getReplay', 'stopReplay'])
      await example(operation, { params: { ...params, replay_id } })
    await call('updateOutgoingWebhook', {
      params,
      body: { url: receiver.url, events: ['task.completed'], retry_schedule: [3_600] },
    })
    return (await call('createTask')).id
  }

  /** @returns the ids of a queued import and a queued export. */
  async function attached(entity_id: string) {
    const ofRecord = { entity: 'contacts', entity_id }
    const headers = { 'Content-Type': 'text/plain' }
    const { id: file_id } = await example('uploadFile', {
      params: ofRecord,
      query: '?name=offer.txt',
      body: 'Dear Ada, this is our offer.',
      headers,
    })
    await example('listFiles', { params: ofRecord })
    await example('downloadFile', { params: { file_id } })
    await example('deleteFile', { params: { file_id } })
  }

  async function files() {
    const { id: import_id } = await example('createImport')
    const params = { import_id }
    await example('uploadImportFile', { params })
    await example('startImport', { params })
    await example('stopImport', { params })
    await example('resumeImport', { params })
    const { id: export_id } = await example('createExport')
    return { import_id, export_id }
  }

  async function filesDone(params: { import_id: string; export_id: string }) {
    await untilAnswer('getImport', { params }, ({ status }) => status === 'completed')
    await example('getImport', { params })
    await example('listImports', { query: '?limit=1' })
    await example('getImportErrors', { params })
    await example('undoImport', { params, preview: true, body: {} })
    await example('undoImport', { params })
    await untilAnswer('getExport', { params }, ({ status }) => status === 'completed')
    await example('getExport', { params })
    await example('listExports', { query: '?limit=1' })
    await example('getExportFile', { params })
  }

  async function bulkJobs() {
    const query = { 'created_at[lt]': '2020-01-01' }
    await example('bulkContacts', { preview: true, body: { action: 'delete', query } })
    const { id: job_id } = await example('bulkContacts')
    await untilAnswer('getBulkJob', { params: { job_id } }, ({ status }) => status === 'completed')
    await example('getBulkJob', { params: { job_id } })
    await example('listBulkJobs', { query: '?limit=1' })
    await example('undoBulkJob', { params: { job_id }, preview: true, body: {} })
    await example('undoBulkJob', { params: { job_id } })
    const { id: other } = await call('createContact', { body: { email: 'erased@example.com' } })
    const erased = { params: { entity_id: other } }
    await example('eraseContact', { ...erased, preview: true, body: {} })
    const { id: erasure_id } = await example('eraseContact', erased)
    await untilAnswer('getErasure', { params: { erasure_id } }, ({ status }) => status === 'completed')
    await example('getErasure', { params: { erasure_id } })
    await example('listErasures', { query: '?limit=1' })
  }

  async function runs(workflow_id: string) {
    const headers = { Prefer: 'wait=30' }
    const { run_id } = await example('runWorkflowByName', { headers })
    await example('runWorkflow', { params: { workflow_id }, headers })
    await example('getRun', { params: { run_id } })
    await example('listRuns', { query: '?limit=1' })
    await example('retryRun', { params: { run_id }, headers })
    await example('streamRun', { params: { run_id } })
    await example('createRunBatch', { preview: true, body: { action: 'retry' } })
    const { batch_id } = await example('createRunBatch')
    await example('getRunBatch', { params: { batch_id } })
    await waits()
    const loop = await call('createWorkflow', { body: { name: 'Each', spec: LOOP } })
    const looped = { params: { workflow_id: loop.workflow_id }, headers, body: { confirm: true } }
    const { run_id: looping } = await call('runWorkflow', looped)
    await example('listIterations', { params: { run_id: looping }, query: '?loop=each&limit=1' })
    await example('testNode')
    await example('testWorkflow')
    const greet = { workflow_id: loop.workflow_id, node_id: 'greet' }
    await example('putSample', { params: greet })
    await example('listSamples', { params: { workflow_id: loop.workflow_id } })
    await example('testNodeOfWorkflow', { params: greet, body: { inputs: { item: 'Ada' }, confirm: true } })
    await example('deleteSample', { params: greet })
  }

  async function analytics() {
    await example('listMetrics')
    await example('queryAnalytics')
    for (const name of ['Pipeline', 'Records', 'Activities', 'Workflows', 'Webhooks'])
      await example(`get${name}Analytics`)
    const { id: report_id } = await example('createReport')
    const params = { report_id }
    await example('listReports')
    await example('getReport', { params, query: '?results=true' })
    await example('updateReport', { params })
    await example('deleteReport', { params })
  }

  async function waits() {
    const spec =
      'name: Discount\nnodes: {hold: {type: wait_for_signal, config: {name: paid}}, ask: {type: approval, config: {title: Discount of 30 %}}}'
    const { workflow_id } = await call('createWorkflow', { body: { spec } })
    const { run_id } = await call('runWorkflow', { params: { workflow_id }, body: { confirm: true } })
    const params = { run_id }
    await untilAnswer('getRun', { params }, ({ waits }) => waits[0]?.type === 'signal')
    await example('signalRun', { params })
    let link = ''
    await untilAnswer('getRun', { params }, ({ waits }) => {
      link = waits[0]?.approval?.link ?? ''
      return link !== ''
    })
    const token = { token: link.split('/').at(-1)! }
    await example('getApproval', { params: token })
    await example('answerApproval', { params: token })
  }

  async function deliveries(task: string) {
    const params = { webhook_id: outgoingId }
    receiver.behave(503)
    await call('updateTask', { params: { entity_id: task }, body: { status: 'done' } })
    const list: Call = { params, query: '?limit=1&event=task.completed' }
    await untilAnswer(
      'listDeliveries',
      list,
      ({ data }) => data[0]?.attempt_count === 1 && data[0].next_attempt_at,
    )
    const delivery_id = (await example('listDeliveries', list)).data[0].id
    const of = { params: { delivery_id } }
    await example('rescheduleDelivery', { ...of, body: { at: new Date(Date.now() + 3_600_000) } })
    await example('pauseDelivery', of)
    await example('resumeDelivery', of)
    await untilAnswer('getDelivery', of, ({ status }) => status === 'delivering')
    await example('retryDelivery', { params: { delivery_id } })
    await untilAnswer('getDelivery', { params: { delivery_id } }, ({ status }) => status === 'succeeded')
    await example('getDelivery', { params: { delivery_id } })
    await example('listAllDeliveries', { query: `?limit=1&webhook_id=${outgoingId}&event=task.completed` })
    await example('resendDelivery', of)
    const other = await call('createOutgoingWebhook', {
      body: { name: 'Backup', url: receiver.url, events: ['*'] },
    })
    await example('retargetDelivery', { ...of, body: { webhook_id: other.id } })
  }
})

/** Truncates lists of objects to the first item, JSON Schemas to the first properties, files to the first lines. */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) {
    const isLong = value.length > 3 && typeof value[0] === 'object'
    return value.slice(0, isLong ? 1 : value.length).map(shortened)
  }
  if (typeof value === 'string') return value.split('\r\n').slice(0, 3).join('\r\n')
  if (typeof value !== 'object' || value === null) return value
  const { $schema, type, properties } = value as Json
  if ($schema)
    return { $schema, type, properties: Object.fromEntries(Object.entries(properties).slice(0, 3)) }
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortened(member)]))
}
