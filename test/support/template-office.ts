import { deepEqual, equal, ok } from 'node:assert/strict'
import { updateOrganization } from '../../db/access/organization.ts'
import { putSecret } from '../../db/access/secrets.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import type { RecordInput } from '../../db/model/records/schemas.ts'
import { createDefinition } from '../../db/records/custom-fields/definitions.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { createScheduledRuns } from '../../db/runs/scheduled.ts'
import type { Template } from '../../workflows/templates/index.ts'
import { createKey, type TestApi } from './api.ts'
import { createOrganization, type TestDatabase } from './database.ts'
import { recordsOf } from './records.ts'
import type { ReceivedMail } from './smtp.ts'
import { until } from './until.ts'
import { untilRun } from './worker.ts'

/** A request to the local server. */
export interface Call {
  path: string
  headers: Record<string, unknown>
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  body: any
}

/** The servers that runs of templates call. `url`: the local server, which records `calls`. */
interface Servers {
  db: TestDatabase
  api: TestApi
  url: string
  calls: Call[]
  mails: ReceivedMail[]
}

/** Shortens waits and retries. The minimum time limit of a wait for an event is a second. */
const shortened = (spec: string) =>
  spec
    .replace(/for: \d+d/g, 'for: 50ms')
    .replace(/initial_interval: \d+s/g, 'initial_interval: 20ms')
    .replace(/since: run_start, timeout: \d+d/g, 'since: run_start, timeout: 1s')

/** An organization that has imported the template and meets its requirements. */
export async function createOffice({ db, api, url, calls, mails }: Servers, template: Template) {
  const { id } = template
  const organizationId = await createOrganization(db)
  const { key } = await createKey(db, organizationId)
  const records = recordsOf(db, organizationId)
  const request = async (method: string, path: string, body?: object) => {
    const answer = await api.request(method, `/v1${path}`, { key, ...(body ? { body } : {}) })
    ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const address = (name: string) => `${name}@${id}.example.com`

  await meet({ db, api, url }, template, organizationId)
  const { workflow_id, warnings, status } = await request('POST', '/workflows/import', { template_id: id })
  deepEqual([status, warnings], ['DRAFT', []])
  const spec = shortened(template.spec)
  if (spec !== template.spec) await request('PATCH', `/workflows/${workflow_id}`, { spec })
  await request('POST', `/workflows/${workflow_id}/activate`)

  const completed = async (runId: string) => {
    const { status, outputs, error } = await untilRun(db, runId)
    equal(status, 'completed', JSON.stringify(error))
    return outputs as Record<string, unknown>
  }
  const rows = (table: string) => db.system(table).where({ organization_id: organizationId }).orderBy('id')
  /** The row of a node once it waits. */
  const waits = (run_id: string) => until(() => db.system('run_waits').where({ run_id }).first())
  return {
    organizationId,
    records,
    request,
    address,
    create: (kind: KindName, fields: RecordInput) => records.create(kind, fields),
    rows,
    titles: async () => (await rows('tasks')).map(({ title }) => title).sort(),
    mails: () => mails.filter(({ to }) => to[0]!.endsWith(`@${id}.example.com`)),
    calls: (name = '') => calls.filter(({ path }) => path.startsWith(`/${id}/${name}`)),
    /** Starts a run by hand. @returns its outputs. */
    run: async (inputs: object = {}) => {
      const { run_id } = await request('POST', `/workflows/${workflow_id}/run`, { inputs, confirm: true })
      return completed(run_id)
    },
    scheduled: async () => {
      const scheduled_at = new Date().toISOString()
      const runs = await records.tenant((tx) =>
        createScheduledRuns(tx, workflow_id, [{ scheduled_at, source: 'schedule' }]),
      )
      return completed(runs.get(scheduled_at)!)
    },
    webhook: async (record: object) => {
      const runId = await records.tenant((tx) =>
        createRun(tx, {
          workflow: { id: workflow_id, version: 1, name: template.name },
          trigger: { type: 'webhook', record, payload: {}, action: 'created' },
          inputs: {},
          chain: CHAIN_START,
        }),
      )
      return completed(runId)
    },
    /** Waits for the runs that events start. @returns the outputs of the first. */
    triggered: async (count = 1) => {
      const runs = await until(async () => {
        const found = await rows('runs').where({ workflow_id })
        return found.length >= count && found
      })
      return (await Promise.all(runs.map(({ id }) => completed(id))))[0]!
    },
    start: async (inputs: object) =>
      (await request('POST', `/workflows/${workflow_id}/run`, { inputs, confirm: true })).run_id as string,
    completed,
    waits,
    decide: async (runId: string, decision: 'approved' | 'rejected') => {
      const { id } = await waits(runId)
      await records.tenant((tx) =>
        answerApproval(tx, { run_id: runId, id }, { decision, comment: 'fine' }, { type: 'key', id: null }),
      )
    },
    env: (env: Record<string, string>) => records.tenant((tx) => updateOrganization(tx, { env })),
    done: () => request('DELETE', `/workflows/${workflow_id}`),
  }
}

async function meet(
  { db, api, url }: Pick<Servers, 'db' | 'api' | 'url'>,
  { id, requires }: Template,
  organizationId: string,
) {
  const { tenant } = recordsOf(db, organizationId)
  const local = (name: string) => `${url}/${id}/${name}`
  await tenant(async (tx) => {
    for (const name of requires.secrets) {
      const value = name.startsWith('slack')
        ? local(name)
        : name.endsWith('webhook')
          ? WEBHOOK_SECRET
          : `key-${id}`
      await putSecret(tx, api.secretsKey, name, value)
    }
    const settings = requires.env.map((name) => [name, local(name)])
    await updateOrganization(tx, { env: Object.fromEntries(settings) })
    for (const { entity, name, type } of requires.custom_fields)
      await createDefinition(tx, entity as KindName, name, { type })
  })
}
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export type Office = Awaited<ReturnType<typeof createOffice>>
