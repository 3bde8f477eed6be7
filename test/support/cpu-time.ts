import { readdirSync, readFileSync } from 'node:fs'

/** The CPU time of this process in milliseconds. Unlike the wall time it does not grow when other processes compute. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** The CPU time of all threads of another process in milliseconds, to the nanosecond. Linux only. */
export function threadTimes(pid: number): number {
  let nanoseconds = 0
  for (const thread of readdirSync(`/proc/${pid}/task`))
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
  return nanoseconds / 1e6
}
