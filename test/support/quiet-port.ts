import { freePort } from '../../worker/dev/postgres/server.ts'

/**
 * A free port below those that the system gives to outgoing connections (from 32768 on Linux): none of the processes that
 * run beside this one takes it before it is bound.
 */
export async function quietPort(): Promise<number> {
  for (;;) {
    const port = await freePort(12_000 + Math.floor(Math.random() * 20_000))
    if (port < 32_000) return port
  }
}
