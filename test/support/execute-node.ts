import { pino } from 'pino'
import { explainError } from '../../activities/explain.ts'
import type { Effects } from '../../workflows/effects/index.ts'
import { contextOf, effectsFor } from '../../workflows/interpret/context.ts'
import { execute, type Outcome } from '../../workflows/interpret/execute.ts'
import { NodeSecrets } from '../../workflows/interpret/node-secrets.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import { LIMITS } from '../../workflows/shared/run-limits.ts'

export interface ExecuteOptions {
  /** The values that placeholders read. */
  scope?: Record<string, unknown>
  effects?: Partial<Effects>
  now?: Date
  attempt?: number
  /** The iteration of a loop that the node is in. */
  path?: string
  /** The time zone of the organization; default UTC. */
  timezone?: string
}

/** One attempt of a node, from its config as authored to its outcome, with the given effects. */
export function executeNode(
  type: string,
  config: Record<string, unknown>,
  {
    scope = {},
    effects = {},
    now = new Date('2026-01-01T00:00:00Z'),
    attempt = 1,
    path,
    timezone = 'UTC',
  }: ExecuteOptions = {},
): Promise<Outcome> {
  const found = findNodeType(type)!
  const effectClass = found.effectClass(config)
  const { secrets = {}, ...others } = scope
  const { signal } = new AbortController()
  const context = contextOf({
    run: { id: 'run', workflow_id: null, workflow_name: 'Test' },
    organization: { id: 'organization', currency: 'EUR', timezone },
    now,
    node: { id: 'node', attempt, ...(path === undefined ? {} : { path }) },
    signal,
    scope: others,
    effects: effectsFor(found.effects, effectClass, (name) => effects[name]!),
  })
  return execute({ type, config }, others, context, {
    limits: LIMITS,
    ...(effectClass === 'external'
      ? { secrets: new NodeSecrets(new Map(Object.entries(secrets as Record<string, string>))) }
      : {}),
    explain: (error) =>
      explainError(error, { log: pino({ level: 'silent' }), signal, run_id: 'run', node: 'node' }),
  })
}

/** The output of a node that completes. Throws its error if it fails. */
export async function outputOf(
  type: string,
  config: Record<string, unknown>,
  options?: ExecuteOptions,
): Promise<Record<string, unknown>> {
  const outcome = await executeNode(type, config, options)
  if (outcome.status === 'failed') throw Object.assign(new Error(outcome.error.message), outcome.error)
  return outcome.output as Record<string, unknown>
}

/** The code and the message of a node that fails. */
export async function errorOf(
  type: string,
  config: Record<string, unknown>,
  options?: ExecuteOptions,
): Promise<[code: string, message: string]> {
  const outcome = await executeNode(type, config, options)
  if (outcome.status !== 'failed') throw new Error(`the node did not fail: ${JSON.stringify(outcome.output)}`)
  return [outcome.error.code, outcome.error.message]
}
