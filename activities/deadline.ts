/** The longest timer of Node.js. */
const MAX_MS = 2 ** 31 - 1

/**
 * Runs `work` with a signal that aborts when `outer` does, or after `ms`. Nothing of it remains afterwards: a signal of
 * `AbortSignal.any` that has a listener is kept for ever in Node.js 20 once its `AbortSignal.timeout` was collected,
 * which cost a worker 8 KB for each call (nodejs/node#54614).
 * @param work `isOver` tells whether the time was exceeded.
 */
export async function withDeadline<T>(
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal, isOver: () => boolean) => Promise<T>,
): Promise<T> {
  const abort = new AbortController()
  let over = false
  const onOuter = () => abort.abort(outer.reason)
  if (outer.aborted) onOuter()
  else outer.addEventListener('abort', onOuter, { once: true })
  const timer = setTimeout(
    () => {
      over = true
      abort.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
    },
    Math.min(Math.max(1, Math.ceil(ms)), MAX_MS),
  )
  try {
    return await work(abort.signal, () => over)
  } finally {
    clearTimeout(timer)
    outer.removeEventListener('abort', onOuter)
  }
}
