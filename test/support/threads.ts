import type { tasks as workerTasks } from '../../activities/compute/tasks.ts'
import type { tasks as apiTasks } from '../../api/compute/tasks.ts'
import { Pool, type Tasks } from '../../db/process/compute/pool.ts'

/**
 * The threads of the APIs and workers that run in a test process, which serve all of its files: a thread loads the
 * sources through tsx, which takes an API's 1.7 s of CPU time and a worker's 0.4 s.
 */
export const apiThreads = shared<typeof apiTasks>('api/compute/tasks.ts')
export const workerThreads = shared<typeof workerTasks>('activities/compute/tasks.ts', {
  owner: 100,
  all: 1_000,
})

function shared<T extends Tasks>(module: string, queue?: { owner: number; all: number }) {
  const pool = new Pool<T>({
    module: new URL(`../../${module}`, import.meta.url),
    idleMs: 600_000,
    ...(queue && { queue }),
  })
  return {
    run: pool.run.bind(pool) as Pool<T>['run'],
    /** What is closed is an API or a worker; the next one uses the threads again. */
    close: async () => {},
  }
}
