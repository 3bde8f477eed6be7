import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/**
 * Asks `/healthz` of processes all the time, from a thread of its own, so that the test's own work delays nothing. An
 * answer counts by the CPU time of the process's main thread until it: by what the thread had to do before. Its wall time
 * grows with all that the machine does. Where there is no /proc, it is the wall time.
 */
export interface HealthProbe {
  /** The longest answer of each process since the last call, in milliseconds, in the order of the processes. */
  longest(): Promise<number[]>
  close(): Promise<void>
}

const EVERY_MS = 5

const SOURCE = `
const { parentPort, workerData } = require('node:worker_threads')
const { readFileSync } = require('node:fs')
const http = require('node:http')
const clock = (pid) => {
  try {
    // Nanoseconds that the main thread has run.
    return Number(readFileSync('/proc/' + pid + '/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    return performance.now()
  }
}
const agentOf = () => new http.Agent({ keepAlive: true })
const probes = workerData.processes.map((one) => ({ ...one, agent: agentOf(), longest: 0, since: undefined }))
const ask = (probe) => {
  probe.since = clock(probe.pid)
  const done = () => {
    probe.longest = Math.max(probe.longest, clock(probe.pid) - probe.since)
    probe.since = undefined
    setTimeout(ask, workerData.every, probe)
  }
  http.get(probe.url + '/healthz', { agent: probe.agent }, (answer) => answer.resume().on('end', done)).on('error', done)
}
probes.forEach(ask)
parentPort.on('message', () => {
  const current = (probe) => probe.since === undefined ? 0 : clock(probe.pid) - probe.since
  parentPort.postMessage(probes.map((probe) => Math.max(probe.longest, current(probe))))
  for (const probe of probes) probe.longest = 0
})
`

export async function probeHealth(...processes: { url: string; pid: number }[]): Promise<HealthProbe> {
  const thread = new Worker(SOURCE, { eval: true, execArgv: [], workerData: { processes, every: EVERY_MS } })
  await once(thread, 'online')
  return {
    async longest() {
      thread.postMessage('longest')
      const [longest] = (await once(thread, 'message')) as [number[]]
      return longest
    },
    async close() {
      await thread.terminate()
    },
  }
}
