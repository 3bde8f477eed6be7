import { setTimeout as sleep } from 'node:timers/promises'
import type { Ground, Party } from './ground.ts'

/** Calls of the API by a party, and workflows for the attacks. */
export class Caller {
  private readonly send: Ground['send']
  private readonly bearer: Record<string, string>

  constructor({ send }: Ground, { key }: Party) {
    this.send = send
    this.bearer = { Authorization: `Bearer ${key}` }
  }

  call(method: string, path: string, body?: unknown) {
    return this.send(method, `/v1${path}`, this.bearer, body)
  }

  /** Throws unless the answer is a success. */
  async done(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const { status, text } = await this.call(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 500)}`)
    return JSON.parse(text)
  }

  /** Saves a workflow and activates it. @returns its id. */
  async workflow(spec: string): Promise<string> {
    const { workflow_id } = await this.done('POST', '/workflows', { spec })
    await this.done('POST', `/workflows/${workflow_id}/activate`, {})
    return workflow_id as string
  }

  /** Starts a run. @returns its id. */
  async run(workflowId: string, inputs: object = {}): Promise<string> {
    const { run_id } = await this.done('POST', `/workflows/${workflowId}/run`, { confirm: true, inputs })
    return run_id as string
  }

  /** The status of a run once it has ended; `open` if it has not after a minute. */
  async endOf(runId: string): Promise<string> {
    const read = async () => {
      const { status } = await this.done('GET', `/runs/${runId}`)
      return /^(?:queued|running|waiting|paused)$/.test(status as string) ? undefined : (status as string)
    }
    return (await eventually(read, 60)) ?? 'open'
  }
}

/** The first value of `read` that is not undefined; undefined after so many seconds. */
export async function eventually<T>(
  read: () => Promise<T | undefined>,
  seconds: number,
): Promise<T | undefined> {
  for (let tries = 0; tries < seconds * 2; tries++) {
    const value = await read()
    if (value !== undefined) return value
    await sleep(500)
  }
  return undefined
}

/** Sets limits of the attacker's organization for one attack, and restores those of before. */
export async function withLimits(
  { db, attacker }: Ground,
  limits: Record<string, number>,
  work: () => Promise<void>,
): Promise<void> {
  const organization = db.system('organizations').where({ id: attacker.organizationId })
  const before = (await organization.clone().first<{ limits: object }>('limits')).limits
  const set = (values: object) => organization.clone().update({ limits: JSON.stringify(values) })
  await set({ ...before, ...limits })
  try {
    await work()
  } finally {
    await set(before)
    // A process counts what an organization has at most once a second, and refuses by that count.
    await sleep(1_500)
  }
}
