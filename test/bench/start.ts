import { readFileSync } from 'node:fs'
import { startStack, type TestStack } from '../support/stack.ts'
import { print } from './report.ts'

/** V8 releases the memory of the start only after about 20 s. */
const IDLE_SECONDS = 30

/** A second start on the data of a stopped stack: the time until ready, and the memory when idle. */
export async function benchStart(previous: TestStack): Promise<void> {
  const started = performance.now()
  const stack = await startStack({ previous })
  print(`second start: ready after ${((performance.now() - started) / 1_000).toFixed(1)} s`)
  await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1_000))
  const [api, worker] = (['api', 'worker'] as const).map((name) => residentMegabytes(stack.pid(name)))
  print(
    `resident after ${IDLE_SECONDS} s idle: api ${api} MB, worker ${worker} MB, together ${api! + worker!} MB`,
  )
  await stack.stop()
}

/** Linux only, where `npm run bench` is meant to run. */
function residentMegabytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kilobytes) / 1_024)
}
