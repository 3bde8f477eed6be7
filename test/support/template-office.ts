import { deepEqual } from 'node:assert/strict'
import { updateOrganization } from '../../db/access/organization.ts'
import { putSecret } from '../../db/access/secrets.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { createDefinition } from '../../db/records/custom-fields/definitions.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { createScheduledRuns } from '../../db/runs/scheduled.ts'
import type { Template } from '../../workflows/templates/index.ts'
import { openOffice, type Servers } from './office.ts'
import { recordsOf } from './records.ts'

/** Shortens waits and retries. The minimum time limit of a wait for an event is a second. */
const shortened = (spec: string) =>
  spec
    .replace(/for: \d+d/g, 'for: 50ms')
    .replace(/initial_interval: \d+s/g, 'initial_interval: 20ms')
    .replace(/since: run_start, timeout: \d+d/g, 'since: run_start, timeout: 1s')

/** `url`: that of the local server. */
type TemplateServers = Servers & { url: string }

/** An organization that has imported the template and meets its requirements. */
export async function createOffice(servers: TemplateServers, template: Template) {
  const { id } = template
  const office = await openOffice(servers, id)
  const { request, records, organizationId, completed } = office
  await meet(servers, template, organizationId)
  const { workflow_id, warnings, status } = await request('POST', '/workflows/import', { template_id: id })
  deepEqual([status, warnings], ['DRAFT', []])
  const spec = shortened(template.spec)
  if (spec !== template.spec) await request('PATCH', `/workflows/${workflow_id}`, { spec })
  await request('POST', `/workflows/${workflow_id}/activate`)
  const workflow = office.workflow(workflow_id)
  return {
    ...office,
    ...workflow,
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
      const runs = await workflow.runs(count)
      return (await Promise.all(runs.map(({ id }) => completed(id))))[0]!
    },
    env: (env: Record<string, string>) => records.tenant((tx) => updateOrganization(tx, { env })),
  }
}

async function meet({ db, api, url }: TemplateServers, { id, requires }: Template, organizationId: string) {
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
