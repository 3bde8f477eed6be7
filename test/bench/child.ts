import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A separate process of a bench, so that a floor shares nothing with the measured code. */
export interface BenchChild {
  /** Its first message, sent when it is ready. */
  ready: Record<string, unknown>
  pid: number
  ask<T>(question: object): Promise<T>
  close(): Promise<void>
}

/** @param flags of Node.js, as those of the measured process. */
export async function startChild(file: string, args: string[], flags: string[] = []): Promise<BenchChild> {
  const execArgv = [...flags, '--import', 'tsx']
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv })
  const ready = await answer<Record<string, unknown>>(child)
  return {
    ready,
    pid: child.pid!,
    async ask<T>(question: object) {
      child.send(question)
      return answer<T>(child)
    },
    async close() {
      // It may have ended by an error, which the caller has.
      if (child.exitCode !== null || child.signalCode !== null) return
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

async function answer<T>(child: ChildProcess): Promise<T> {
  // Removes the listener that is no longer needed.
  const heard = new AbortController()
  const [message] = await Promise.race([
    once(child, 'message', heard),
    once(child, 'exit', heard).then(([code]) => {
      throw new Error(`the floor's process ended (${code})`)
    }),
  ]).finally(() => heard.abort())
  return message as T
}
