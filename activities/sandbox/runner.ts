import { ComputeError, Pool } from '../../db/process/compute/pool.ts'
import type { SandboxProgram, SandboxResult } from '../../workflows/effects/sandbox.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { CODE } from '../../workflows/shared/limits.ts'
import type { Hold } from '../deadline.ts'
import { CALLS } from '../slots/call-slots.ts'
import type { CodeFailure } from './evaluate.ts'
import type { tasks } from './tasks.ts'

/** Runs code of tenants in threads: it never blocks the event loop of the process. */
export class CodeRunner {
  private readonly pool: Pool<typeof tasks>
  private readonly milliseconds: number
  private readonly waitMs: number

  /** `onTask` is called with the name of each task that a thread gets. */
  constructor(
    { ms, killMs, waitMs }: { ms: number; killMs: number; waitMs: number } = CODE,
    onTask?: (name: string) => void,
  ) {
    this.milliseconds = ms
    this.waitMs = waitMs
    this.pool = new Pool<typeof tasks>({
      module: new URL('./tasks.ts', import.meta.url),
      deadlineMs: killMs,
      // As many as the worker has slots for calls: none is refused.
      queue: { owner: CALLS.all, all: CALLS.all },
      onTask,
    })
  }

  /**
   * Runs the code when it is the organization's turn. The clock of the attempt stands still until then: the wait has
   * its own limit. Throws NodeError.
   */
  async run(
    organizationId: string,
    program: SandboxProgram,
    { signal, hold }: { signal?: AbortSignal; hold?: Hold } = {},
  ): Promise<SandboxResult> {
    const { code, inputs, seed, now } = program
    const given = {
      code,
      inputs: JSON.stringify(inputs),
      seed,
      now: now.getTime(),
      milliseconds: this.milliseconds,
    }
    const goOn = hold?.() ?? (() => {})
    const turn = { owner: organizationId, waitMs: this.waitMs, onBegin: goOn, ...(signal && { signal }) }
    const { failure, result, log } = await this.pool
      .run(turn, 'evaluate', given)
      .catch((error: unknown) => {
        if (error instanceof ComputeError) throw this.limitError(error.limit)
        throw error
      })
      .finally(goOn)
    if (failure) throw this.failureError(failure, log)
    return { result: result === undefined ? null : JSON.parse(result), log }
  }

  close(): Promise<void> {
    return this.pool.close()
  }

  private failureError({ kind, message, line, column }: CodeFailure, log: string[]): NodeError {
    if (kind === 'time' || kind === 'memory') return this.limitError(kind, log)
    const text = line === undefined ? message : `line ${line}: ${message}`
    return new NodeError(kind === 'result' ? 'invalid_result' : 'code_failed', text, {
      details: { ...(line === undefined ? {} : { line, column }), ...(log.length > 0 ? { log } : {}) },
    })
  }

  private limitError(limit: ComputeError['limit'], log: string[] = []): NodeError {
    const details = log.length > 0 ? { log } : {}
    switch (limit) {
      case 'time':
        return new NodeError('code_timeout', `The code took longer than ${this.milliseconds / 1_000} s.`, {
          details,
        })
      case 'memory':
        return new NodeError(
          'code_out_of_memory',
          `The code took more than ${CODE.memoryBytes / 1024 / 1024} MiB.`,
          { details },
        )
      case 'turn':
        return new NodeError(
          'code_not_started',
          `The code was not started within ${this.waitMs / 1_000} s: other code of the organization takes too long.`,
          { retryable: true },
        )
      case 'waiting':
        return new NodeError('too_busy', 'Too much code of the organization waits to run.', {
          retryable: true,
        })
    }
  }
}
