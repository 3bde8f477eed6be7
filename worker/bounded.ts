/** Work that took longer than it may. */
export class TookTooLong extends Error {}

/**
 * The result of `work`; throws TookTooLong if it takes longer than `ms`. The work is not stopped, so it must be safe to
 * repeat.
 */
export async function bounded<T>(ms: number, name: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TookTooLong(`${name} took longer than ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
