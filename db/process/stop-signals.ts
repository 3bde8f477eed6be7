/**
 * A signal to a whole group of processes (Ctrl-C, systemd's default) comes twice: npm, in the same group, passes it on.
 * Within this time the second one is a copy of the first.
 */
const COPY_MS = 1_000

/** Calls `begin` at the first SIGTERM or SIGINT. A further one exits immediately. */
export function onStopSignal(begin: (signal: NodeJS.Signals) => void): void {
  let since: number | undefined
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      if (since === undefined) {
        since = performance.now()
        begin(signal)
      } else if (performance.now() - since > COPY_MS) process.exit(1)
    })
}
