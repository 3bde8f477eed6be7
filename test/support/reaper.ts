import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'

/**
 * Runs `script` in a shell of its own as soon as this process ends, however it ends, kill -9 included: the shell
 * waits for its standard input to close. Call the returned function to have it run now, and wait for it.
 */
export function reaper(script: string): () => Promise<void> {
  const shell = spawn('/bin/sh', ['-c', `cat > /dev/null\n${script}`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const closed = once(shell, 'close')
  shell.unref()
  // It is a socket, though its type does not say so; left alone it would keep this process from ending by itself.
  const stdin = shell.stdin as Socket
  stdin.unref()
  return async () => {
    shell.ref()
    stdin.end()
    await closed
  }
}
