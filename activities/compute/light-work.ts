import { NoThread, withComputed } from '../../db/process/compute/computed.ts'
import { ComputeError, Pool } from '../../db/process/compute/pool.ts'
import { Places } from './places.ts'
import { tasks } from './tasks.ts'

/** A call of a task. Throws NeedsComputation for a long text whose result a thread must make first. */
export type LightCompute = <Name extends keyof typeof tasks>(
  name: Name,
  ...values: Parameters<(typeof tasks)[Name]>
) => ReturnType<(typeof tasks)[Name]>

/** Computes at once. */
export const computeInline: LightCompute = (name, ...values) =>
  (tasks[name] as (...values: unknown[]) => never)(...values)

/** Characters of a text of which each task takes less than some 15 ms. */
const INLINE_CHARACTERS = 65_536

/** Milliseconds that a segment waits for its first turn; then it goes back to Temporal. */
const FIRST_TURN_MS = 5_000

/** The default of a worker with 10 connections. */
const SEGMENTS = 20

type Threads = Pick<Pool<typeof tasks>, 'run' | 'close'>

export interface LightWorkOptions {
  /** The segments that the worker runs at once. */
  segments?: number
  /** Called with the name of each task that a thread gets. */
  onTask?: ((name: string) => void) | undefined
  /** Default: a pool of its own. */
  threads?: Threads
}

/** The computations of light nodes, whose transactions must not wait for a thread. */
export class LightWork {
  private readonly threads: Threads
  private readonly places: Places

  constructor({ segments = SEGMENTS, onTask, threads }: LightWorkOptions = {}) {
    this.places = new Places(segments)
    this.threads =
      threads ??
      new Pool<typeof tasks>({
        module: new URL('./tasks.ts', import.meta.url),
        // Tasks of segments have places of their own, and tasks of node tests are few.
        queue: { owner: 100, all: 1_000 },
        onTask,
      })
  }

  /** Has a transaction compute: what a thread must do is done before the transaction, which begins again with it. */
  before<T>(organizationId: string, transact: (compute: LightCompute) => Promise<T>): Promise<T> {
    return this.outside(transact, (name, values) => this.threads.run(organizationId, name, ...values))
  }

  /**
   * The same for a segment of a run. Throws NoThread if it would have to wait while many others do: then it has computed
   * nothing, so that what it has once begun is not made again.
   */
  async beforeSegment<T>(
    organizationId: string,
    transact: (compute: LightCompute) => Promise<T>,
  ): Promise<T> {
    let leave: (() => void) | undefined
    try {
      return await this.outside(transact, async (name, values) => {
        const first = leave === undefined
        leave ??= this.places.take(organizationId)
        if (!leave) throw new NoThread()
        const turn = { owner: organizationId, ...(first && { waitMs: FIRST_TURN_MS }) }
        try {
          return await this.threads.run(turn, name, ...values)
        } catch (error) {
          if (error instanceof ComputeError && WAITED.has(error.limit)) throw new NoThread()
          throw error
        }
      })
    } finally {
      leave?.()
    }
  }

  private outside<T>(
    transact: (compute: LightCompute) => Promise<T>,
    run: (name: keyof typeof tasks, values: [string, never]) => Promise<unknown>,
  ): Promise<T> {
    return withComputed(
      (name: keyof typeof tasks, ...values: [string, never]) => run(name, values),
      (computed) =>
        transact(((name: keyof typeof tasks, ...values: [string, never]) =>
          values[0].length <= INLINE_CHARACTERS
            ? computeInline(name, ...values)
            : computed(name, ...values)) as LightCompute),
    )
  }

  close(): Promise<void> {
    return this.threads.close()
  }
}

/** The limits that say nothing of the task itself. */
const WAITED = new Set(['waiting', 'turn'])
