import threads from 'node:worker_threads'

/**
 * Preloaded into the workflow threads. The SDK records no stacks where promise hooks are unavailable. It prints a warning
 * then, which is dropped: the log holds JSON only. Node's own AsyncLocalStorage, which needs its hooks, has a `before`.
 */
const PRELOAD = `
import v8 from 'node:v8'
const { createHook } = v8.promiseHooks
v8.promiseHooks.createHook = (hooks) => {
  if (hooks.before) return createHook(hooks)
  const { warn } = console
  console.warn = () => { console.warn = warn }
  throw new Error('promise hooks are turned off')
}`

/**
 * Creates workers whose workflow threads do not record a stack for every promise; the SDK has no switch for it. Recording
 * takes most of a workflow task, and grows with the square of its signals: a task with 4,000 took 12 s, and 1.8 s without
 * it. An activation that exceeds `isolateExecutionTimeout` is terminated, and Node 20 may abort the process then ("async
 * hook stack has become corrupted": https://github.com/nodejs/node/issues/43135). The price is the "Call Stack" in the
 * Temporal UI.
 */
export async function withoutPromiseStacks<T>(create: () => Promise<T>): Promise<T> {
  const { Worker } = threads
  // The flags of the process are not passed on: the SDK's threads run plain JavaScript, and need no tsx.
  const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(PRELOAD)}`]
  threads.Worker = class extends Worker {
    constructor(file: string | URL, options?: threads.WorkerOptions) {
      super(file, { ...options, execArgv })
    }
  }
  try {
    return await create()
  } finally {
    threads.Worker = Worker
  }
}
