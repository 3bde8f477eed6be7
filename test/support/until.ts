import { setTimeout as sleep } from 'node:timers/promises'

type Found<T> = NonNullable<Exclude<T, false | '' | 0>>

/**
 * Polls until `look` returns something that is not empty, and returns it; an error counts as not yet. The bound only
 * finds a hang, since what takes a second takes many on a busy machine.
 *
 * @param what is awaited, for the error; as a function, what is there instead. Without it, the source of `look` is shown.
 */
export async function until<T>(
  look: () => Promise<T> | T,
  what: string | (() => unknown) = String(look),
  seconds = 120,
): Promise<Found<T>> {
  let failure: unknown
  for (const end = Date.now() + seconds * 1_000; Date.now() < end; await sleep(20))
    try {
      const found = await look()
      if (found) return found as Found<T>
      failure = undefined
    } catch (error) {
      failure = error
    }
  const awaited = typeof what === 'string' ? what : JSON.stringify(await what())
  throw new Error(`waited ${seconds} s for ${awaited}${failure ? `: ${failure}` : ''}`, { cause: failure })
}
