import assert from 'node:assert/strict'
import { appRoutes } from '../../../api/app/route-table.ts'
import { type AuditAction, recordChange } from '../../../db/access/audit-log.ts'
import { newLinkToken } from '../../../db/access/link-tokens.ts'
import { createUser } from '../../../db/access/users.ts'
import { hashPassword } from '../../../db/process/passwords.ts'
import { createMember, createOrganization, testActor } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'
import { type App, headersOf, signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

const PASSWORD = 'correct horse battery staple'
const PLANTED = planted('hunter2')
/** The value of a setting, which is no secret, but not for the log either. */
const SETTING = 'the-setting-of-ada'

/** The operations of /app that write no entry, each with the reason. */
const DELIVERY = 'moves one delivery; the delivery shows it'
const REPLAY = 'sends events again; the replay shows it'
const NOT_RECORDED: Record<string, string> = {
  testIncomingWebhook: 'a trial that changes nothing',
  testOutgoingWebhook: 'sends one delivery, which shows it',
  ...Object.fromEntries(
    ['resend', 'retry', 'pause', 'resume', 'reschedule', 'retarget', 'cancel'].map((name) => [
      `${name}Delivery`,
      DELIVERY,
    ]),
  ),
  ...Object.fromEntries(
    ['create', 'pause', 'resume', 'stop'].flatMap((name) => [
      [`${name}Replay`, REPLAY],
      [`${name}IncomingReplay`, REPLAY],
    ]),
  ),
  captureIncomingWebhookSample: 'keeps the next request as a sample; the log of the webhook shows it',
  proposeIncomingMapping: 'computes only',
  previewIncomingMapping: 'computes only',
  updatePreferences: 'which mails one wants, oneself',
}

describe('the audit log', () => {
  const suite = withApi({
    SIGN_UP: 'open',
    PLAN_CHANGES: 'open',
    ALLOW_INSECURE_WEBHOOKS: 'true',
    EGRESS_ALLOW: '127.0.0.0/8',
  })
  let ownerId: string
  let owner: App
  before(async () => {
    ownerId = await createMember(suite.db, suite.api.organizationId, 'Ada', 'owner')
    owner = await signInAs(suite.db, suite.api, ownerId)
  })
  const entries = (query = '', app = owner) => app('GET', `/audit-log?limit=200${query}`)

  it('has an entry of every operation of /app that changes access or configuration', async () => {
    const { db, api } = suite
    const recorded = new Set<string>()
    /** Calls an operation with its example, and asserts that it wrote this entry. */
    async function change(
      id: string,
      action: AuditAction,
      {
        params = {},
        body,
        app = owner,
        isNew = false,
      }: {
        params?: Record<string, string>
        body?: unknown
        app?: App
        /** Whether the entry belongs to an organization that the operation creates. */
        isNew?: boolean
      } = {},
    ) {
      const route = appRoutes.find((one) => one.id === id)!
      const path = route.path.replace(/\{(\w+)\}/g, (_, name) => params[name]!)
      await db.system('audit_log').delete()
      const answer = await app(route.method, path, body ?? route.example)
      assert.ok(answer.status < 300, `${id}: ${JSON.stringify(answer.body)}`)
      const rows = await db.system('audit_log').select('action', 'organization_id')
      assert.ok(
        rows.some((row) => row.action === action && (row.organization_id === api.organizationId) !== isNew),
        `${id}: ${JSON.stringify(rows)}`,
      )
      recorded.add(id)
      return answer
    }
    const { organizationId } = api
    const publicly: App = (method, path, body) =>
      api.request(method, `/app${path}`, { key: null, ...(body === undefined ? {} : { body }) })

    await createUser(db.system, {
      email: 'ada@example.com',
      password: PASSWORD,
      name: 'Ada',
      organizationId,
      role: 'owner',
    })
    await change('signUp', 'organization.created', { app: publicly, isNew: true })
    const signUp = newLinkToken()
    await db.system('sign_ups').insert({
      token_hash: signUp.hash,
      email: 'bob@example.com',
      name: 'Bob',
      organization_name: 'Of Bob',
      password_hash: await hashPassword(PASSWORD),
      expires_at: new Date(Date.now() + 60_000),
    })
    await change('confirmSignUp', 'organization.created', {
      app: publicly,
      isNew: true,
      params: { token: signUp.token },
    })
    await change('signIn', 'session.created', { app: publicly })
    await change('endSession', 'session.ended', {
      params: { session_id: (await (await signInAs(db, api, ownerId))('GET', '/session')).body.id },
    })
    await change('signOut', 'session.ended', { app: await signIn(db, api) })
    await change('switchOrganization', 'session.switched', {
      app: await signIn(db, api),
      body: { organization_id: organizationId },
    })

    const invited = await change('createInvitation', 'invitation.created')
    await change('withdrawInvitation', 'invitation.withdrawn', { params: { invitation_id: invited.body.id } })
    const { token } = (await change('createInvitation', 'invitation.created')).body
    const { user } = (
      await change('acceptInvitation', 'invitation.accepted', { app: publicly, params: { token } })
    ).body
    const params = { user_id: user.id }
    await change('updateMember', 'member.role_changed', { params })
    await change('requestPasswordReset', 'password_reset.requested', { app: publicly })
    const reset = await change('createPasswordReset', 'password_reset.created', { params })
    await change('resetPassword', 'member.password_changed', {
      app: publicly,
      params: { token: reset.body.token },
    })
    await change('removeMember', 'member.removed', { params })

    await change('updateOrganization', 'organization.updated')
    await change('changePlan', 'organization.plan_changed')
    await change('putSecret', 'secret.stored', { params: { name: 'a' }, body: { value: PLANTED } })
    await change('deleteSecret', 'secret.deleted', { params: { name: 'a' } })
    const key = { params: { key_id: (await change('createKey', 'key.created')).body.id } }
    await change('updateKey', 'key.updated', key)
    await change('rotateKey', 'key.rotated', key)
    await change('revokeKey', 'key.revoked', key)
    const grant = appRoutes.find(({ id }) => id === 'createGrant')!.example as {
      client_id: string
      redirect_uri: string
    }
    await db.system('oauth_clients').insert({
      id: grant.client_id,
      name: 'Claude',
      redirect_uris: [grant.redirect_uri],
      expires_at: new Date(Date.now() + 60_000),
    })
    const { id: grant_id } = (await change('createGrant', 'grant.created')).body
    await db.system('oauth_grants').update({ code_used_at: new Date() })
    await change('revokeGrant', 'grant.revoked', { params: { grant_id } })
    const suppression_id = (await change('addMailSuppression', 'mail_suppression.added')).body.id
    await change('removeMailSuppression', 'mail_suppression.removed', { params: { suppression_id } })
    for (const [kind, name] of [
      ['Incoming', 'incoming_webhook'],
      ['Outgoing', 'outgoing_webhook'],
    ] as const) {
      const { body } = await change(`create${kind}Webhook`, `${name}.created`)
      const of = { params: { webhook_id: body.id } }
      await change(`update${kind}Webhook`, `${name}.updated`, of)
      const isOutgoing = name === 'outgoing_webhook'
      await change(`deactivate${kind}Webhook`, isOutgoing ? `${name}.deactivated` : `${name}.updated`, of)
      await change(`activate${kind}Webhook`, isOutgoing ? `${name}.activated` : `${name}.updated`, of)
      await change(`rotate${kind}WebhookSecret`, `${name}.secret_rotated`, of)
      await change(`delete${kind}Webhook`, `${name}.deleted`, of)
    }
    assert.deepEqual(
      [...recorded, ...Object.keys(NOT_RECORDED)].sort(),
      appRoutes
        .filter(({ method }) => method !== 'GET')
        .map(({ id }) => id)
        .sort(),
    )
  })

  it('has those of /v1, with the key that made them', async () => {
    const { db, api } = suite
    await db.system('audit_log').delete()
    await api.request('POST', '/v1/custom-fields/contacts', { body: { name: 'tier', type: 'text' } })
    await api.request('PATCH', '/v1/custom-fields/contacts/tier', { body: { label: 'Tier' } })
    await api.request('DELETE', '/v1/custom-fields/contacts/tier')
    const spec = 'name: Greet\nnodes: {greet: {type: set_fields, config: {fields: {text: Hello}}}}'
    const { body } = await api.request('POST', '/v1/workflows', { body: { spec } })
    const path = `/v1/workflows/${body.workflow_id}`
    await api.request('PATCH', path, { body: { name: 'Welcome' } })
    await api.request('POST', `${path}/activate`)
    await api.request('POST', `${path}/deactivate`)
    await api.request('DELETE', path)
    const { data } = (await entries()).body
    assert.deepEqual(
      data.map(({ action, target }: { action: string; target: { name: string } }) => [action, target.name]),
      [
        ['workflow.deleted', 'Welcome'],
        ['workflow.deactivated', 'Welcome'],
        ['workflow.activated', 'Welcome'],
        ['workflow.updated', 'Welcome'],
        ['workflow.created', 'Greet'],
        ['custom_field.deleted', 'tier'],
        ['custom_field.updated', 'tier'],
        ['custom_field.created', 'tier'],
      ],
    )
    for (const { actor } of data) assert.deepEqual([actor.type, actor.name], ['key', 'test'])
  })

  it('says what was changed and by whom, also after they are gone, and has no secrets', async () => {
    const { db, api } = suite
    await db.system('audit_log').delete()
    const graceId = await createMember(db, api.organizationId, 'Grace', 'admin')
    const grace = await signInAs(db, api, graceId)
    await grace('PUT', '/secrets/acme', { value: PLANTED })
    await grace('PATCH', '/organization', { currency: 'EUR', env: { crm: SETTING } })
    await owner('PATCH', `/members/${graceId}`, { role: 'member' })
    await owner('DELETE', `/members/${graceId}`)
    const { data } = (await entries()).body
    assert.deepEqual(
      data.map(({ action, actor, target, details }: (typeof data)[number]) => [
        action,
        actor.name,
        target.name,
        details,
      ]),
      [
        ['member.removed', 'Ada', 'Grace', { role: 'member' }],
        ['member.role_changed', 'Ada', 'Grace', { from: 'admin', to: 'member' }],
        ['organization.updated', 'Grace', 'Test', { fields: ['currency', 'env.crm'] }],
        ['secret.stored', 'Grace', 'acme', {}],
        ['session.created', 'Grace', 'unknown address', { user_agent: null }],
      ],
    )
    const log = JSON.stringify(await db.system('audit_log'))
    for (const value of [PLANTED, SETTING]) assert.ok(!log.includes(value), value)
  })

  it('has no entry of a change that failed or changed nothing', async () => {
    const { db, api } = suite
    await db.system('audit_log').delete()
    assert.equal((await owner('DELETE', '/secrets/nothing')).status, 404)
    assert.equal((await owner('PATCH', '/organization', {})).status, 200)
    assert.equal((await owner('PATCH', '/organization', { currency: 'XXXX' })).status, 422)
    const rolledBack = db.tenant(api.organizationId, testActor, async (tx) => {
      await recordChange(tx, 'secret.stored', { id: 'a', name: 'a' })
      throw new Error('afterwards')
    })
    await assert.rejects(rolledBack, /afterwards/)
    assert.equal((await entries()).body.total, 0)
  })

  it('is filtered and paged', async () => {
    const { db, api } = suite
    await db.system('audit_log').delete()
    for (const name of ['a', 'b', 'c']) await owner('PUT', `/secrets/${name}`, { value: PLANTED })
    await owner('DELETE', '/secrets/b')
    const names = async (query: string) =>
      (await entries(query)).body.data.map(({ target }: { target: { name: string } }) => target.name)
    assert.deepEqual(await names('&action=secret.stored'), ['c', 'b', 'a'])
    assert.deepEqual(await names('&target_id=b'), ['b', 'b'])
    assert.deepEqual(await names(`&actor_id=${ownerId}&action=secret.deleted`), ['b'])
    assert.deepEqual(await names('&actor_id=0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10'), [])
    const stored = db.system('audit_log').where({ organization_id: api.organizationId, target_id: 'a' })
    await stored.update({ created_at: new Date('2026-01-31T12:00:00Z') })
    assert.deepEqual(await names('&from=2026-01-31&to=2026-01-31'), ['a'])
    assert.deepEqual(await names('&from=2026-02-01'), ['b', 'c', 'b'])

    const first = await owner('GET', '/audit-log?limit=2&action=secret.stored')
    assert.deepEqual([first.body.total, first.body.has_more], [3, true])
    const { next_cursor: cursor } = first.body
    const next = await owner('GET', `/audit-log?limit=2&action=secret.stored&cursor=${cursor}`)
    assert.deepEqual([next.body.data.length, next.body.has_more], [1, false])
    assert.equal((await owner('GET', `/audit-log?limit=2&cursor=${cursor}`)).status, 400)
    assert.equal((await owner('GET', '/audit-log?action=secret.read')).status, 422)
  })

  it('is for admins of the organization', async () => {
    const { db, api } = suite
    await owner('PUT', '/secrets/mine', { value: PLANTED })
    assert.equal((await entries('', await signIn(db, api, 'member'))).status, 403)
    assert.equal((await api.request('GET', '/app/audit-log')).status, 401)
    const other = await createOrganization(db)
    const stranger = await createMember(db, other, 'Eve', 'owner')
    const headers = await headersOf(db, { ...api, organizationId: other }, stranger)
    const { body } = await api.request('GET', '/app/audit-log', { key: null, headers })
    assert.deepEqual(
      body.data.map(({ action }: { action: string }) => action),
      ['session.created'],
    )
  })

  it('cannot be changed by the role of the application', async () => {
    const { db, api } = suite
    for (const method of ['delete', 'update'] as const)
      await assert.rejects(
        db.tenant(api.organizationId, testActor, async (tx) => {
          const rows = tx.trx('audit_log').where({ organization_id: api.organizationId })
          await (method === 'delete' ? rows.delete() : rows.update({ target_name: 'x' }))
        }),
        { code: '42501' },
      )
  })
})
