/** The CPU time of this process in milliseconds. Unlike the wall time it does not grow when other processes compute. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
