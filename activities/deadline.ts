/** The longest timer of Node.js. */
const MAX_MS = 2 ** 31 - 1

/**
 * Runs `work` with a signal that aborts when `outer` does, or after `ms`. Not by `AbortSignal.any`: Node.js 20 never
 * frees such a signal with a listener once its `AbortSignal.timeout` was collected, 8 KB for each call
 * (nodejs/node#54614).
 * @param work `isOver` tells whether the time was exceeded; `hold` stops the clock while `work` waits for its turn,
 * until the function that it returns is called.
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

/** Stops a clock, and returns the function that continues it. */
export type Hold = () => () => void

/** Calls `onOver` once the clock has run for `ms`. */
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
