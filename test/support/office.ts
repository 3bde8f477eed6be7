import { equal, ok } from 'node:assert/strict'
import type { KindName } from '../../db/model/records/kind.ts'
import type { RecordInput } from '../../db/model/records/schemas.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { createKey, type TestApi } from './api.ts'
import { createOrganization, type TestDatabase } from './database.ts'
import { recordsOf } from './records.ts'
import type { ReceivedMail } from './smtp.ts'
import { until } from './until.ts'
import { untilRun } from './worker.ts'

/** A request to the local server. */
export interface Call {
  method: string
  path: string
  headers: Record<string, unknown>
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  body: any
  /** When it arrived, in milliseconds. */
  at: number
}

/** The API and worker of a test file, and what third parties got from them. */
export interface Servers {
  db: TestDatabase
  api: TestApi
  calls: Call[]
  mails: ReceivedMail[]
}

/**
 * An organization whose mails go to `<id>.example.com`, and whose calls have paths below `/<id>/`: tests of workflows as
 * in use, several beside each other on the same servers.
 */
export async function openOffice({ db, api, calls, mails }: Servers, id: string) {
  const organizationId = await createOrganization(db)
  const { key } = await createKey(db, organizationId)
  const records = recordsOf(db, organizationId)
  const answer = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    api.request(method, `/v1${path}`, { key, headers, ...(body ? { body } : {}) })
  const request = async (method: string, path: string, body?: object) => {
    const { status, body: answered } = await answer(method, path, body)
    ok(status < 300, `${method} ${path}: ${JSON.stringify(answered)}`)
    return answered
  }
  const rows = (table: string) => db.system(table).where({ organization_id: organizationId }).orderBy('id')
  const completed = async (runId: string) => {
    const { status, outputs, error } = await untilRun(db, runId)
    equal(status, 'completed', JSON.stringify(error))
    return outputs as Record<string, unknown>
  }
  /** The row of a node once it waits. */
  const waits = (run_id: string) => until(() => db.system('run_waits').where({ run_id }).first())
  return {
    organizationId,
    records,
    answer,
    request,
    address: (name: string) => `${name}@${id}.example.com`,
    create: (kind: KindName, fields: RecordInput) => records.create(kind, fields),
    rows,
    titles: async () => (await rows('tasks')).map(({ title }) => title).sort(),
    mails: () => mails.filter(({ to }) => to[0]!.endsWith(`@${id}.example.com`)),
    calls: (name = '') => calls.filter(({ path }) => path.startsWith(`/${id}/${name}`)),
    ended: (runId: string) => untilRun(db, runId),
    completed,
    waits,
    /** The time until which a node waits, once one does. */
    waitsUntil: async (run_id: string): Promise<string> => {
      const sleeping = () => db.system('run_nodes').where({ run_id }).whereNotNull('wait_until').first()
      return (await until(sleeping)).wait_until.toISOString()
    },
    decide: async (runId: string, decision: 'approved' | 'rejected') => {
      const { id } = await waits(runId)
      await records.tenant((tx) =>
        answerApproval(tx, { run_id: runId, id }, { decision, comment: 'fine' }, { type: 'key', id: null }),
      )
    },
    /** The ways to start a saved workflow. */
    workflow(workflow_id: string) {
      const start = async (inputs: object = {}) =>
        (await request('POST', `/workflows/${workflow_id}/run`, { inputs, confirm: true })).run_id as string
      return {
        workflow_id,
        start,
        /** Starts a run by hand. @returns its outputs. */
        run: async (inputs: object = {}) => completed(await start(inputs)),
        /** Waits until that many runs, which events start, have ended. @returns their rows. */
        runs: (count: number) =>
          until(
            async () => {
              const found = await rows('runs').where({ workflow_id })
              return found.length >= count && found.every(({ ended_at }) => ended_at) && found
            },
            async () => (await rows('runs').where({ workflow_id })).map(({ status }) => status),
          ),
        done: () => request('DELETE', `/workflows/${workflow_id}`),
      }
    },
  }
}
