import { deepEqual, equal } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { KindName } from '../../db/model/records/kind.ts'
import { createDefinition } from '../../db/records/custom-fields/definitions.ts'
import { type Call, openOffice, type Servers } from './office.ts'
import { bodyOf } from './smtp.ts'
import { type Reply, withOffices } from './with-offices.ts'

/**
 * Jobs that authors wrote from the guide alone, each in `test/fixtures/jobs/<folder>/<id>.yaml`: its workflow, and after
 * `---` the ones that it calls. Each runs in an organization of its own; `https://<id>.example.com` is the local server.
 */
export interface Job {
  /** Custom fields to define, by kind: their names and types. */
  fields?: { [kind in KindName]?: Record<string, 'number' | 'text' | 'date' | 'boolean'> }
  /** The time zone of the organization; default UTC. */
  timezone?: string
  /** Makes what the workflow needs before it is saved, such as pipelines. */
  prepare?: (office: Office, servers: Servers) => Promise<unknown>
  /** The reply to the `count`th call of this method and path, without the `/<id>` at its beginning. */
  replies?: (call: Call, count: number) => Reply
  /** Does what the job is about, and compares what came of it with what its author meant. */
  work: (office: JobOffice) => Promise<void>
}

type Office = Awaited<ReturnType<typeof openOffice>>

const FOLDER = new URL('../fixtures/jobs/', import.meta.url)

async function openJob(
  servers: Servers,
  folder: string,
  id: string,
  { fields = {}, timezone, prepare }: Job,
) {
  const office = await openOffice(servers, id)
  const { request, organizationId } = office
  if (timezone !== undefined)
    await servers.db.system.raw(
      `update organizations set settings = settings || jsonb_build_object('timezone', ?::text) where id = ?`,
      [timezone, organizationId],
    )
  for (const [kind, types] of Object.entries(fields))
    for (const [name, type] of Object.entries(types))
      await office.records.tenant((tx) => createDefinition(tx, kind as KindName, name, { type }))
  await prepare?.(office, servers)
  const specs = readFileSync(new URL(`${folder}/${id}.yaml`, FOLDER), 'utf8').split(/^---\n/m)
  const save = async (spec: string) => {
    const { workflow_id } = await request('POST', '/workflows', { spec })
    await request('POST', `/workflows/${workflow_id}/activate`)
    return office.workflow(workflow_id)
  }
  const called = await Promise.all(specs.slice(1).map(save))
  const workflow = await save(specs[0]!)
  return {
    ...office,
    ...workflow,
    mails: () =>
      office
        .mails()
        .map((mail) => ({ to: mail.to.join(), subject: mail.header('subject'), text: bodyOf(mail).trim() })),
    /** Replaces a text of the spec. */
    change: async (from: string, to: string) => {
      const path = `/workflows/${workflow.workflow_id}`
      await request('PATCH', path, { spec: specs[0]!.replace(from, to) })
      await request('POST', `${path}/activate`)
    },
    /** The calls, as `POST /path` without the `/<id>` at the beginning of the path. */
    paths: () => office.calls().map(({ method, path }) => `${method} ${path.slice(id.length + 1)}`),
    bodies: (name = '') => office.calls(name).map(({ body }) => body),
    fieldsOf: async (kind: KindName, record: string) =>
      (await office.records.get(kind, record)).custom_fields as Record<string, unknown>,
    /** A webhook of the workflow. @returns what sends to it. */
    hook: async (settings: object = {}) => {
      const { workflow_id } = workflow
      const values = { name: id, workflow_id, target_entity: 'none', ...settings }
      const webhook = await request('POST', '/webhooks/incoming', values)
      return (body: object) =>
        servers.api.request('POST', `/webhooks/incoming/${webhook.id}`, {
          key: null,
          body,
          headers: { 'X-Webhook-Secret': webhook.secret },
        })
    },
    close: async () => {
      for (const { done } of [workflow, ...called]) await done()
    },
  }
}

export type JobOffice = Awaited<ReturnType<typeof openJob>>

/** A `describe` with a test for each job of the folder. */
export function describeJobs(title: string, folder: string, jobs: Record<string, Job>, least = 20): void {
  describe(title, () => {
    const counts = new Map<string, number>()
    const servers = withOffices(
      (call) => {
        const [, id = '', rest] = /^\/([\w-]+)(.*)$/.exec(call.path)!
        const key = `${call.method} ${call.path}`
        counts.set(key, (counts.get(key) ?? 0) + 1)
        return jobs[id]?.replies?.({ ...call, path: rest! }, counts.get(key)!) ?? { body: {} }
      },
      (url, local) => url.replace(/^https:\/\/([\w-]+)\.example\.com/, `${local}/$1`),
    )

    it('are those of the folder', () => {
      const files = readdirSync(new URL(folder, FOLDER))
      deepEqual(
        Object.keys(jobs)
          .map((id) => `${id}.yaml`)
          .sort(),
        files.sort(),
      )
      equal(files.length >= least, true)
    })

    for (const [id, job] of Object.entries(jobs))
      it(id, async () => {
        const office = await openJob(servers(), folder, id, job)
        await job.work(office)
        await office.close()
      })
  })
}
