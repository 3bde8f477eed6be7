import { Worker } from 'node:worker_threads'

/**
 * A few threads for computations that a tenant chooses and that may take long: each has a deadline and a heap limit.
 * Threads start when they are needed and end when they are not. A thread whose task breaks a limit ends with it.
 *
 * Not piscina (5.3): a custom queue must hand out a task for every free thread, and a task that finds a free thread
 * skips the queue, so that one owner can have all threads. Nothing tells when a task begins, from which its deadline
 * counts. Without idle threads (`minThreads: 0`), tasks that wait when the threads run out of memory stay in
 * the queue until another task is added.
 */

/** What a module of tasks exports as `tasks`: functions of values that can be cloned, to such values. */
// biome-ignore lint/suspicious/noExplicitAny: each task has arguments of its own
export type Tasks = Record<string, (...values: any[]) => unknown>

export interface PoolOptions {
  /** The module that exports `tasks`. */
  module: URL
  threads?: number
  /** Milliseconds that a task may take, from when a thread begins it. */
  deadlineMs?: number
  heapMb?: number
  /** Milliseconds after which a thread without a task ends. */
  idleMs?: number
  /** Tasks that may wait, of one owner and of all together. */
  queue?: { owner: number; all: number }
  /** Called with the name of each task that a thread gets. */
  onTask?: ((name: string) => void) | undefined
}

/** A task broke a limit: `time`, `memory`, too many `waiting` tasks, or its `turn` did not come in time. */
export class ComputeError extends Error {
  override readonly name = 'ComputeError'
  readonly limit: Limit

  constructor(limit: Limit) {
    super(BROKEN[limit])
    this.limit = limit
  }
}

const BROKEN = {
  time: 'it takes too long',
  memory: 'it takes too much memory',
  waiting: 'too much is waiting',
  turn: 'it has waited too long for its turn',
}
type Limit = keyof typeof BROKEN

/** How a task waits for a thread. */
export interface Turn {
  /** Organizations take turns. */
  owner: string
  /** Milliseconds that it may wait; default: without limit. */
  waitMs?: number
  /** Aborted, it is not begun. */
  signal?: AbortSignal
  /** Called when a thread begins it. */
  onBegin?(): void
}

const DEFAULTS = {
  threads: 2,
  /** Generous, for the machine may be busy: threads have a low priority. */
  deadlineMs: 10_000,
  heapMb: 192,
  idleMs: 60_000,
  queue: { owner: 20, all: 200 },
}

interface Job {
  owner: string
  onBegin: () => void
  /** Ends the waiting: it has its turn now, or never. */
  settle(): void
  name: string
  values: unknown[]
  resolve(value: unknown): void
  reject(error: Error): void
}

interface Thread {
  worker: Worker
  job: Job | undefined
  timer: NodeJS.Timeout | undefined
}

export class Pool<T extends Tasks> {
  private readonly options: PoolOptions & typeof DEFAULTS
  private readonly threads = new Set<Thread>()
  /** The tasks that wait, by owner; the owner whose turn is next comes first. */
  private readonly waiting = new Map<string, Job[]>()
  private closed = false

  constructor(options: PoolOptions) {
    this.options = { ...DEFAULTS, ...options }
  }

  /**
   * Runs a task in a thread. Owners (organizations) take turns, and none has all threads.
   * Throws ComputeError where the task breaks a limit, and what the task throws, as a plain Error.
   */
  run<Name extends keyof T & string>(
    turn: string | Turn,
    name: Name,
    ...values: Parameters<T[Name]>
  ): Promise<Awaited<ReturnType<T[Name]>>> {
    const { owner, waitMs, signal, onBegin = () => {} } = typeof turn === 'string' ? { owner: turn } : turn
    return new Promise((resolve, reject) => {
      const jobs = this.waiting.get(owner) ?? []
      const all = [...this.waiting.values()].reduce((sum, { length }) => sum + length, 0)
      const { queue } = this.options
      if (this.closed || jobs.length >= queue.owner || all >= queue.all)
        return reject(new ComputeError('waiting'))
      if (signal?.aborted) return reject(signal.reason)
      const leave = (reason: unknown) => {
        job.settle()
        this.forget(job)
        reject(reason)
      }
      const onAbort = () => leave(signal?.reason)
      const timer =
        waitMs === undefined ? undefined : setTimeout(() => leave(new ComputeError('turn')), waitMs)
      const settle = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const job: Job = { owner, name, values, onBegin, settle, resolve: resolve as Job['resolve'], reject }
      signal?.addEventListener('abort', onAbort, { once: true })
      jobs.push(job)
      this.waiting.set(owner, jobs)
      this.dispatch()
    })
  }

  /** The threads that are there now. */
  get size(): number {
    return this.threads.size
  }

  /** Ends all threads; tasks that have not ended are refused. */
  async close(): Promise<void> {
    this.closed = true
    for (const jobs of this.waiting.values())
      for (const job of jobs) {
        job.settle()
        job.reject(new ComputeError('waiting'))
      }
    this.waiting.clear()
    await Promise.all([...this.threads].map((thread) => this.end(thread, new ComputeError('waiting'))))
  }

  private dispatch(): void {
    for (let job = this.next(); job; job = this.next()) {
      const thread = [...this.threads].find((one) => !one.job) ?? this.start()
      this.give(thread, job)
    }
  }

  /** Removes the next task that may begin from those that wait. */
  private next(): Job | undefined {
    const busy = [...this.threads].flatMap(({ job }) => job ?? [])
    if (busy.length >= this.options.threads) return undefined
    const most = Math.max(1, this.options.threads - 1)
    for (const [owner, jobs] of this.waiting) {
      if (busy.filter((job) => job.owner === owner).length >= most) continue
      const job = jobs.shift()
      this.waiting.delete(owner)
      if (jobs.length > 0) this.waiting.set(owner, jobs)
      return job
    }
    return undefined
  }

  private forget(job: Job): void {
    const jobs = this.waiting.get(job.owner)?.filter((one) => one !== job) ?? []
    if (jobs.length > 0) this.waiting.set(job.owner, jobs)
    else this.waiting.delete(job.owner)
  }

  private start(): Thread {
    const worker = new Worker(new URL('./thread.mjs', import.meta.url), {
      execArgv: [],
      workerData: { module: this.options.module.href },
      resourceLimits: { maxOldGenerationSizeMb: this.options.heapMb },
    })
    const thread: Thread = { worker, job: undefined, timer: undefined }
    this.threads.add(thread)
    // A process that has nothing else to do ends.
    worker.unref()
    worker.on('message', (message: Message) => this.hear(thread, message))
    worker.on('error', (error: NodeJS.ErrnoException) =>
      this.end(thread, error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new ComputeError('memory') : error),
    )
    worker.on('exit', () => this.end(thread, new Error('a thread ended unexpectedly')))
    return thread
  }

  private give(thread: Thread, job: Job): void {
    clearTimeout(thread.timer)
    job.settle()
    thread.job = job
    this.options.onTask?.(job.name)
    thread.worker.ref()
    try {
      thread.worker.postMessage({ name: job.name, values: job.values })
    } catch (error) {
      // The values cannot be cloned: without a message the thread would be busy for ever.
      thread.job = undefined
      thread.worker.unref()
      thread.timer = setTimeout(() => this.end(thread), this.options.idleMs).unref()
      job.reject(error as Error)
    }
  }

  private hear(thread: Thread, message: Message): void {
    const { job } = thread
    if (!job) return
    if ('begun' in message) {
      job.onBegin()
      thread.timer = setTimeout(() => this.end(thread, new ComputeError('time')), this.options.deadlineMs)
      return
    }
    clearTimeout(thread.timer)
    thread.job = undefined
    thread.worker.unref()
    thread.timer = setTimeout(() => this.end(thread), this.options.idleMs).unref()
    if ('error' in message) job.reject(new Error(message.error))
    else job.resolve(message.value)
    this.dispatch()
  }

  private async end(thread: Thread, error?: Error): Promise<void> {
    if (!this.threads.delete(thread)) return
    clearTimeout(thread.timer)
    thread.job?.reject(error ?? new ComputeError('waiting'))
    thread.job = undefined
    await thread.worker.terminate()
    this.dispatch()
  }
}

type Message = { begun: true } | { value: unknown } | { error: string }
