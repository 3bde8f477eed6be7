import { ComputeError, Pool } from '../../workflows/compute/pool.ts'
import type { SandboxProgram, SandboxResult } from '../../workflows/effects/sandbox.ts'
import { CODE } from '../../workflows/limits.ts'
import { NodeError } from '../../workflows/nodes/define.ts'
import type { CodeFailure } from './evaluate.ts'
import type { tasks } from './tasks.ts'

/** Runs code of tenants in threads: it never holds up the event loop of the process. */
export class CodeRunner {
  private readonly pool: Pool<typeof tasks>
  private readonly milliseconds: number

  constructor({ ms, killMs }: { ms: number; killMs: number } = CODE) {
    this.milliseconds = ms
    this.pool = new Pool<typeof tasks>({
      module: new URL('./tasks.ts', import.meta.url),
      deadlineMs: killMs,
      // As many as a worker has activities: none is refused.
      queue: { owner: 200, all: 400 },
    })
  }

  /** Organizations take turns. Throws NodeError. */
  async run(organizationId: string, program: SandboxProgram): Promise<SandboxResult> {
    const { code, inputs, seed, now } = program
    const given = {
      code,
      inputs: JSON.stringify(inputs),
      seed,
      now: now.getTime(),
      milliseconds: this.milliseconds,
    }
    const { failure, result, log } = await this.pool
      .run(organizationId, 'evaluate', given)
      .catch((error: unknown) => {
        if (error instanceof ComputeError) throw limitError(error.limit)
        throw error
      })
    if (failure) throw failureError(failure, log)
    return { result: result === undefined ? null : JSON.parse(result), log }
  }

  close(): Promise<void> {
    return this.pool.close()
  }
}

function failureError({ kind, message, line, column }: CodeFailure, log: string[]): NodeError {
  if (kind === 'time' || kind === 'memory') return limitError(kind, log)
  const text = line === undefined ? message : `line ${line}: ${message}`
  return new NodeError(kind === 'result' ? 'invalid_result' : 'code_failed', text, {
    details: { ...(line === undefined ? {} : { line, column }), ...(log.length > 0 ? { log } : {}) },
  })
}

function limitError(limit: ComputeError['limit'], log: string[] = []): NodeError {
  const details = log.length > 0 ? { log } : {}
  if (limit === 'time') return new NodeError('code_timeout', 'The code took too long.', { details })
  if (limit === 'memory')
    return new NodeError(
      'code_out_of_memory',
      `The code took more than ${CODE.memoryBytes / 1024 / 1024} MiB.`,
      {
        details,
      },
    )
  return new NodeError('too_busy', 'Too much code of the organization waits to run.', { retryable: true })
}
