import { parseMetrics } from '../support/prometheus.ts'
import type { TestStack } from '../support/stack.ts'
import { load } from './load.ts'
import { print } from './report.ts'
import { fiveNodes, prepareRuns } from './runs.ts'

const CLIENTS = 50
/** Seconds of load between two samples. */
const SECONDS = 15

/**
 * The memory of a worker over this many runs of five light nodes. It grows until the cache of workflows is full
 * (1,000), and must then be constant. The figures are those of /metrics.
 */
export async function benchMemory(stack: TestStack, runs: number): Promise<void> {
  const { shot } = await fiveNodes(await prepareRuns(stack))
  for (let done = 0; done < runs; ) {
    const { requests, refused, perSecond } = await load(stack.apiUrl, CLIENTS, SECONDS, () => shot)
    done += requests - refused
    const samples = parseMetrics(await (await fetch(`${stack.workerUrl}/metrics`)).text())
    const megabytes = (name: string) => `${Math.round((samples.get(name) ?? Number.NaN) / 2 ** 20)} MB`
    print(
      [
        `${done} runs (${perSecond.toFixed(0)}/s)`.padEnd(22),
        `resident ${megabytes('process_resident_memory_bytes')}`,
        `heap used ${megabytes('nodejs_heap_size_used_bytes')}`,
        `external ${megabytes('nodejs_external_memory_bytes')}`,
      ].join('  '),
    )
    if (refused > 0) print(`${refused} answers were not 2xx`)
  }
}
