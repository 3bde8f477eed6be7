/** The longest timer of Node.js. */
const MAX_MS = 2 ** 31 - 1

/**
 * Runs `work` with a signal that aborts when `outer` does, or after `ms`. Nothing of it remains afterwards: a signal of
 * `AbortSignal.any` that has a listener is kept for ever in Node.js 20 once its `AbortSignal.timeout` was collected,
 * which cost a worker 8 KB for each call (nodejs/node#54614).
 * @param work `isOver` tells whether the time was exceeded; `hold` stops the clock until the function that it returns is
 * called, for what is no work: to wait for a turn.
 */
export async function withDeadline<T>(
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal, isOver: () => boolean, hold: Hold) => Promise<T>,
): Promise<T> {
  const abort = new AbortController()
  let over = false
  const onOuter = () => abort.abort(outer.reason)
  if (outer.aborted) onOuter()
  else outer.addEventListener('abort', onOuter, { once: true })
  const onOver = () => {
    over = true
    abort.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
  }
  const clock = createClock(ms, onOver)
  try {
    return await work(abort.signal, () => over, clock.hold)
  } finally {
    clock.stop()
    outer.removeEventListener('abort', onOuter)
  }
}

/** Stops a clock, and returns the function that lets it go on. */
export type Hold = () => () => void

/** Calls `onOver` once the clock has gone for `ms`. */
function createClock(ms: number, onOver: () => void): { hold: Hold; stop(): void } {
  let left = ms
  let since = 0
  let timer: NodeJS.Timeout | undefined
  const go = () => {
    since = performance.now()
    timer = setTimeout(onOver, Math.min(Math.max(1, Math.ceil(left)), MAX_MS))
  }
  const stop = () => {
    clearTimeout(timer)
    timer = undefined
  }
  let stopped = false
  go()
  return {
    hold() {
      if (timer === undefined) return () => {}
      stop()
      left -= performance.now() - since
      let held = true
      return () => {
        if (held && !stopped) go()
        held = false
      }
    },
    stop() {
      stopped = true
      stop()
    },
  }
}
