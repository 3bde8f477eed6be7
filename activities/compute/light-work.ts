import { withComputed } from '../../db/process/compute/computed.ts'
import { Pool } from '../../db/process/compute/pool.ts'
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

/** The computations of light nodes, whose transactions must not wait for a thread. */
export class LightWork {
  private readonly threads: Pool<typeof tasks>

  /** `onTask` is called with the name of each task that a thread gets. */
  constructor(onTask?: (name: string) => void) {
    this.threads = new Pool<typeof tasks>({
      module: new URL('./tasks.ts', import.meta.url),
      // As many as the worker has segments in progress: none is refused.
      queue: { owner: 500, all: 1_000 },
      onTask,
    })
  }

  /** Has a transaction compute: what a thread must do is done before the transaction, which begins again with it. */
  before<T>(organizationId: string, transact: (compute: LightCompute) => Promise<T>): Promise<T> {
    return withComputed(
      (name: keyof typeof tasks, ...values: [string, never]): Promise<unknown> =>
        this.threads.run(organizationId, name, ...values),
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
