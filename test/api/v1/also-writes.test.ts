import { deepEqual, equal, match } from 'node:assert/strict'
import { belongsToCompany } from '../../../db/model/incoming/mapping/targets.ts'
import { targetEntityOf } from '../../../db/model/incoming/target-entity.ts'
import { FURTHER_KINDS, type FurtherKind } from '../../../db/model/incoming/types.ts'
import { TARGET_KINDS } from '../../../workflows/shared/record-kinds.ts'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

const PATH = '/v1/webhooks/incoming'

/** A body of which each kind makes its record, a note, and a company where its records have one. */
const BODY = {
  name: 'Mill',
  title: 'Mill',
  email: 'ada@example.com',
  company_name: 'Analytical Engines',
  note_content: 'On carry.',
}
const RULE = { companies: 'company_name', notes: 'note_content' }

/** By each kind of webhook, each kind that its requests can write besides. */
const CASES = TARGET_KINDS.flatMap((kind) =>
  FURTHER_KINDS.filter((further) => further === 'notes' || belongsToCompany(kind)).map((further) => ({
    kind,
    further,
  })),
)

describe('what an incoming webhook writes beside its own records', () => {
  const suite = withApi()

  const as = async (scopes: string[], method: string, path: string, body?: object) => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: scopes as never })
    return suite.api.request(method, path, { key, ...(body ? { body } : {}) })
  }
  const send = ({ id, secret }: { id: string; secret: string }, body: object) =>
    suite.api.request('POST', `/webhooks/incoming/${id}`, {
      key: null,
      headers: { 'X-Webhook-Secret': secret },
      body,
    })
  const count = async (kind: FurtherKind) =>
    Number((await suite.db.system(kind).whereNull('deleted_at').count({ n: '*' }).first())!.n)
  const lacks = (scope: string) => [403, `the key lacks the scope ${scope}`]
  const outcome = ({ status, body }: { status: number; body: { error?: { message: string } } }) => [
    status,
    body.error?.message,
  ]
  const others = (further: FurtherKind) => FURTHER_KINDS.filter((one) => one !== further)

  for (const { kind, further } of CASES) {
    const target_entity = targetEntityOf(kind)
    const own = ['webhooks:write', `${kind}:write`]
    const scope = `${further}:write`
    const rules = { mode: 'manual', rules: [{ from: 'x', to: RULE[further] }] }

    it(`of ${kind}: ${further} need ${scope}`, async () => {
      const without = [...own, ...others(further).map((one) => `${one}:write`)]
      const made = (await as(without, 'POST', PATH, { name: 'x', target_entity })).body
      equal(made.also_writes.includes(further), false)
      const before = await count(further)
      const email = (n: number) => `${further}-${n}@${kind}.example`
      const { status, body } = await send(made, { ...BODY, email: email(1) })
      deepEqual([status, body.action], [200, 'created'], JSON.stringify(body))
      equal(await count(further), before)
      match(body.warnings.join(), new RegExp(`${RULE[further]} .*was left out: .*does not write ${further}`))

      const asked = { name: 'x', target_entity, also_writes: [further] }
      deepEqual(outcome(await as(without, 'POST', PATH, asked)), lacks(scope))
      deepEqual(
        outcome(await as(without, 'POST', PATH, { name: 'x', target_entity, field_mapping: rules })),
        lacks(scope),
      )
      const row = `${PATH}/${made.id}`
      deepEqual(outcome(await as(without, 'PATCH', row, { also_writes: [further] })), lacks(scope))
      equal((await as(without, 'PATCH', row, { rate_limit: 70 })).status, 200)

      const all = [...without, scope]
      const whole = (await as(all, 'POST', PATH, { name: 'x', target_entity })).body
      equal(whole.also_writes.includes(further), true)
      const writes = await send(whole, { ...BODY, email: email(2), company_name: `${further} of ${kind}` })
      equal(writes.body.warnings, undefined)
      equal(await count(further), before + 1)
      for (const [method, path] of [
        ['POST', `${PATH}/${whole.id}/rotate-secret`],
        ['PATCH', `${PATH}/${whole.id}`],
        ['DELETE', `${PATH}/${whole.id}`],
      ] as const)
        deepEqual(
          outcome(await as(without, method, path, method === 'DELETE' ? undefined : {})),
          lacks(scope),
        )
    })

    it(`of ${kind}: a draft of rules that writes ${further} needs ${scope}`, async () => {
      const plain = {
        mode: 'manual',
        rules: [{ from: 'name', to: kind === 'contacts' ? 'first_name' : 'tags' }],
      }
      const { body } = await suite.api.request('POST', PATH, {
        body: { name: 'x', target_entity, field_mapping: plain },
      })
      const sent = await send(body, BODY)
      const entries = await suite.api.request('GET', `${PATH}/${body.id}/logs`)
      const log_id = entries.body.data[0].id
      equal(sent.status === 200, kind === 'contacts')
      for (const [path, draft] of [
        [`${PATH}/${body.id}/replays`, { log_id, dry_run: true, field_mapping: rules }],
        [`${PATH}/${body.id}/mapping/preview`, { payload: BODY, field_mapping: rules }],
      ] as const) {
        deepEqual(outcome(await as(own, 'POST', path, draft)), lacks(scope), path)
        equal((await as([...own, scope], 'POST', path, draft)).status < 300, true, path)
      }
    })
  }

  it('is all of it for webhooks that were there before', async () => {
    const { body } = await suite.api.request('POST', PATH, { body: { name: 'x', also_writes: [] } })
    // As the migration leaves it.
    await suite.db
      .system('incoming_webhooks')
      .where({ id: body.id })
      .update({
        also_writes: suite.db.system.raw("'{companies,notes}'"),
      })
    const before = await count('notes')
    const answer = await send(body, { ...BODY, email: 'old@example.com', company_name: 'Old Mills' })
    deepEqual([answer.status, answer.body.warnings], [200, undefined])
    equal(await count('notes'), before + 1)
  })

  it('is what the rules of a draft can name', async () => {
    const { body } = await suite.api.request('POST', PATH, { body: { name: 'x', also_writes: ['notes'] } })
    const field_mapping = { mode: 'manual', rules: [{ from: 'firm', to: 'company_name' }] }
    const period = { since: '2026-01-01T00:00:00.000Z', field_mapping }
    for (const [path, draft] of [
      ['replays', period],
      ['replays', { ...period, dry_run: true }],
      ['mapping/preview', { payload: BODY, field_mapping }],
    ] as const) {
      const refused = await suite.api.request('POST', `${PATH}/${body.id}/${path}`, { body: draft })
      equal(refused.status, 422, path)
      deepEqual(refused.body.detail[0].loc, ['body', 'field_mapping', 'rules', 0, 'to'])
    }
  })

  it('is what rules name, and no more can be named', async () => {
    const field_mapping = { mode: 'manual', rules: [{ from: 'firm', to: 'company_name' }] }
    const refused = await suite.api.request('POST', PATH, {
      body: { name: 'x', field_mapping, also_writes: ['notes'] },
    })
    equal(refused.status, 422)
    deepEqual(refused.body.detail[0].loc, ['body', 'field_mapping', 'rules', 0, 'to'])
    match(refused.body.detail[0].hint, /companies.*also_writes/)
    // The rules write no note: a key needs no scope for it.
    const { status } = await as(['webhooks:write', 'contacts:write', 'companies:write'], 'POST', PATH, {
      name: 'x',
      field_mapping,
      also_writes: ['companies', 'notes'],
    })
    equal(status, 201)
  })
})
