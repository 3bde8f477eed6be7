import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'

/**
 * Runs `script` in a shell of its own as soon as this process ends, even by kill -9: the shell waits until its standard
 * input closes. The returned function runs it at once and waits for it.
 */
export function reaper(script: string): () => Promise<void> {
  const shell = spawn('/bin/sh', ['-c', `cat > /dev/null\n${script}`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const closed = once(shell, 'close')
  shell.unref()
  // It is a socket, although its type differs; referenced, it would keep this process alive.
  const stdin = shell.stdin as Socket
  stdin.unref()
  return async () => {
    shell.ref()
    stdin.end()
    await closed
  }
}
