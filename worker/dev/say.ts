/** Prints a line on the terminal. */
export const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const QUIET_MILLISECONDS = 2_000

/** Awaits `work`. If it takes longer than two seconds, prints `what` and, at the end, the duration. */
export async function announced<T>(what: string, work: Promise<T>): Promise<T> {
  const started = Date.now()
  let announced = false
  const timer = setTimeout(() => {
    announced = true
    say(`${what} …`)
  }, QUIET_MILLISECONDS)
  try {
    const result = await work
    if (announced) say(`${what}: done in ${((Date.now() - started) / 1000).toFixed(1)} s`)
    return result
  } finally {
    clearTimeout(timer)
  }
}
