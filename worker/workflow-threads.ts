import threads from 'node:worker_threads'

/**
 * Preloaded into the workflow threads of the SDK, which has no switch for it: the SDK records no stacks where promise
 * hooks are unavailable. It prints a warning then, which is dropped: the log holds JSON only. Node's own
 * AsyncLocalStorage, which needs its hooks, has a `before`.
 */
const NO_STACKS = `
import v8 from 'node:v8'
const { createHook } = v8.promiseHooks
v8.promiseHooks.createHook = (hooks) => {
  if (hooks.before) return createHook(hooks)
  const { warn } = console
  console.warn = () => { console.warn = warn }
  throw new Error('promise hooks are turned off')
}`

/**
 * Creates workers with these workflow threads. By default they do not record a stack for every promise. Gain: with stacks
 * a loop over 150 items that wait takes 1.2 times the CPU time of worker, API and PostgreSQL, and a workflow task with
 * 4,000 signals 12 s instead of 1.8 s. The price is the "Call Stack" in the Temporal UI, which `stackTraces` buys back.
 * Tested by workflow-threads.test.ts; package.json pins the SDK's version. Throws if the SDK creates its threads in
 * another way.
 */
export async function withWorkflowThreads<T>(
  { stackTraces }: { stackTraces: boolean },
  create: () => Promise<T>,
): Promise<T> {
  if (stackTraces) return create()
  const { Worker } = threads
  // The flags of the process are not passed on: the SDK's threads run plain JavaScript, and need no tsx.
  const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(NO_STACKS)}`]
  let created = 0
  threads.Worker = class extends Worker {
    constructor(file: string | URL, options?: threads.WorkerOptions) {
      super(file, { ...options, execArgv })
      created++
    }
  }
  try {
    const workers = await create()
    if (created === 0)
      throw new Error('@temporalio/worker has no workflow threads: worker/workflow-threads.ts')
    return workers
  } finally {
    threads.Worker = Worker
  }
}
