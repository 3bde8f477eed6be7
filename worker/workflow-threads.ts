import threads, { type Worker } from 'node:worker_threads'

/** The preloaded script and the watchdog of the SDK's workflow threads; the SDK has no options for either. */

/**
 * Disables stacks: the SDK records none if promise hooks are unavailable. Its warning is dropped, because the log is
 * JSON only. Node's own AsyncLocalStorage, which needs its hooks, passes a `before`.
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
 * Removes the timeouts of script calls. Node starts a native thread for each call with a timeout, and the SDK makes
 * some ten for a run: 60 % of the CPU time of the workflow thread. `watch` replaces them by one watchdog.
 */
const NO_TIMEOUTS = `
import vm from 'node:vm'
const { runInContext } = vm.Script.prototype
vm.Script.prototype.runInContext = function (context, { timeout, ...options } = {}) {
  return Reflect.apply(runInContext, this, [context, options])
}`

/**
 * Creates workers with these workflow threads. By default they do not record a stack for every promise: it takes most
 * of a workflow task, and grows with the square of its signals (a task with 4,000 took 12 s, and 1.8 s without stacks).
 * Only with `stackTraces` does the Temporal UI show a "Call Stack".
 */
export async function withWorkflowThreads<T>(
  { stackTraces }: { stackTraces: boolean },
  create: () => Promise<T>,
): Promise<T> {
  const { Worker } = threads
  const preload = stackTraces ? NO_TIMEOUTS : NO_TIMEOUTS + NO_STACKS
  // The flags of the process are not passed on: the SDK's threads run plain JavaScript, and need no tsx.
  const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`]
  threads.Worker = class extends Worker {
    constructor(file: string | URL, options?: threads.WorkerOptions) {
      super(file, { ...options, execArgv })
      watch(this, PATIENCE)
    }
  }
  try {
    return await create()
  } finally {
    threads.Worker = Worker
  }
}

/**
 * How long a thread may take to answer. Activations of our workflows take milliseconds; only a process without CPU time
 * takes seconds. Checks are counted, not time: a frozen process makes none.
 */
const PATIENCE = { checkMs: 5_000, checks: 12 }

/**
 * Ends the process by an uncaught error if a thread does not answer a request of the SDK: other workers take over its
 * runs.
 */
export function watch(thread: Worker, { checkMs, checks }: typeof PATIENCE): void {
  const owed = new Set<unknown>()
  let silent = 0
  const post = thread.postMessage.bind(thread)
  thread.postMessage = (request: { requestId?: number }, ...rest) => {
    if (request.requestId !== undefined) owed.add(request.requestId)
    post(request, ...rest)
  }
  thread.on('message', ({ requestId }: { requestId?: number }) => {
    owed.delete(requestId)
    silent = 0
  })
  const timer = setInterval(() => {
    silent = owed.size > 0 ? silent + 1 : 0
    if (silent > checks) throw new Error('a workflow thread does not answer')
  }, checkMs)
  timer.unref()
  thread.once('exit', () => clearInterval(timer))
}
