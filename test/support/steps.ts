import { type Profiler, Session } from 'node:inspector'

/**
 * The work of `work`: how many calls of JavaScript functions it makes, in our sources and in packages. Unlike time, the
 * count is the same on a busy machine. Loops without calls, regular expressions and built-in functions do not count.
 * @returns 0 under `npm run coverage`: V8 has one counter, which c8 uses then.
 */
export async function stepsOf(work: () => unknown): Promise<number> {
  if (process.env.NODE_V8_COVERAGE) {
    await work()
    return 0
  }
  const session = new Session()
  session.connect()
  post(session, 'Profiler.enable')
  post(session, 'Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  try {
    await work()
    const { result } = post<Profiler.TakePreciseCoverageReturnType>(session, 'Profiler.takePreciseCoverage')
    let steps = 0
    for (const { url, functions } of result)
      if (url.startsWith('file:')) for (const { ranges } of functions) steps += ranges[0]!.count
    return steps
  } finally {
    post(session, 'Profiler.stopPreciseCoverage')
    session.disconnect()
  }
}

/** Commands to the own thread are answered at once. */
function post<Result>(session: Session, command: string, parameters: object = {}): Result {
  let answer: Result | undefined
  session.post(command, parameters, (error, result) => {
    if (error) throw error
    answer = result as Result
  })
  return answer!
}
