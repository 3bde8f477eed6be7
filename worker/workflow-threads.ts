import threads, { type Worker } from 'node:worker_threads'

/** What is preloaded into the workflow threads of the SDK, which has no switches for it, and how they are watched. */

/**
 * Without stacks: the SDK records none where promise hooks are unavailable. It prints a warning then, which is dropped: the
 * log holds JSON only. Node's own AsyncLocalStorage, which needs its hooks, has a `before`.
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
 * For a call with a timeout Node starts a native thread that may terminate it, and the SDK makes some ten such calls for a
 * run: 60 % of the CPU time of the workflow thread. `watch` does it once for all.
 */
const NO_TIMEOUTS = `
import vm from 'node:vm'
const { runInContext } = vm.Script.prototype
vm.Script.prototype.runInContext = function (context, { timeout, ...options } = {}) {
  return Reflect.apply(runInContext, this, [context, options])
}`

/**
 * Creates workers with these workflow threads. By default they do not record a stack for every promise: recording takes
 * most of a workflow task, and grows with the square of its signals: a task with 4,000 took 12 s, and 1.8 s without it. The
 * price is the "Call Stack" in the Temporal UI, which `stackTraces` buys back.
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
 * How long a thread may be silent while it owes an answer. Activations of our workflows take milliseconds; only a process
 * that has no CPU time takes seconds. Checks are counted, not time: a frozen process makes none.
 */
const PATIENCE = { checkMs: 5_000, checks: 12 }

/**
 * Ends the process, by an error that nobody catches, if a thread answers no request of the SDK: others take over its
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
