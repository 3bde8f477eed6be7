import { setImmediate, setTimeout } from 'node:timers/promises'
import { ports } from '../effects/index.ts'
import { dry } from '../effects/narrate.ts'
import type { Scope } from '../language/expressions/liquid.ts'
import { NodeError } from '../language/node-error.ts'
import type { Authored, NodeType } from '../nodes/define.ts'
import { LIMITS } from '../shared/run-limits.ts'
import { type ContextOptions, contextOf, effectsFor } from './context.ts'
import { describeLoop } from './execute.ts'
import { renderConfig } from './late.ts'
import { NodeLog } from './node-log.ts'
import { capped } from './storable.ts'

const MAX_CALLS = 20
const MAX_MS = 100
/**
 * Lower than in a run, because an API request waits for the rendering. The work takes some 50 ms; the time is that of a
 * busy machine.
 */
export const RENDER_LIMITS = { work: 500_000, milliseconds: 500, characters: 1_000_000 }

/**
 * Describes the calls that a node would make, up to the first one whose result it needs. `run` gets effects that only
 * report their calls, so nothing is executed.
 * @returns undefined if the config is invalid, or a placeholder has no value in `scope`.
 */
export async function dryRun(
  type: NodeType,
  config: Authored,
  scope: Scope,
  facts: Pick<ContextOptions, 'run' | 'organization'>,
): Promise<string[] | undefined> {
  const rendered = parsedConfig(type, config, scope)
  if (!rendered) return undefined
  if (type.body !== undefined) return loopOf(type, rendered.config, facts)
  // A node without effects makes no calls.
  if (type.effects.length === 0) return []

  const log = new NodeLog()
  const end = new AbortController()
  let reported = () => {}
  const firstCall = new Promise<void>((resolve) => {
    reported = resolve
  })
  const report = (line: string) => {
    if (log.lines.length === MAX_CALLS) throw new NodeError('too_many_calls', 'The preview is too long.')
    log.add(line)
    reported()
  }
  const context = contextOf({
    ...facts,
    now: new Date(),
    node: { id: 'test', attempt: 1 },
    signal: end.signal,
    effects: effectsFor(type.effects, type.effectClass(config), (name) => dry(ports[name], report)),
  })
  // The calls of a node that fails before its first call are unknown.
  const ran = Promise.resolve(rendered.config)
    .then((config) => type.run(config, context))
    .then(
      () => true,
      () => log.lines.length > 0,
    )
  // Parallel calls are made in the same turn of the event loop as the first one.
  const waits = firstCall.then(() => setImmediate(true))
  const isKnown = await Promise.race([ran, waits, setTimeout(MAX_MS, true, { signal: end.signal })])
  end.abort()
  return isKnown ? log.lines.map(({ message }) => message) : undefined
}

/** The description of a loop, which makes no calls itself. */
async function loopOf(
  type: NodeType,
  config: unknown,
  facts: Pick<ContextOptions, 'run' | 'organization'>,
): Promise<string[] | undefined> {
  const { signal } = new AbortController()
  const context = contextOf({
    ...facts,
    now: new Date(),
    node: { id: 'test', attempt: 1 },
    signal,
    effects: {},
  })
  try {
    const result = await type.run(config, context)
    if ('turns' in result) return [describeLoop(result.turns)]
    return 'loop' in result ? [describeLoop(result.loop)] : []
  } catch (error) {
    if (error instanceof NodeError) return undefined
    throw error
  }
}

function parsedConfig(type: NodeType, config: Authored, scope: Scope): { config: unknown } | undefined {
  try {
    const parsed = type.config.safeParse(
      capped(renderConfig(type, config, scope, RENDER_LIMITS), LIMITS.valueBytes),
    )
    return parsed.success ? { config: parsed.data } : undefined
  } catch (error) {
    if (error instanceof NodeError) return undefined
    throw error
  }
}
