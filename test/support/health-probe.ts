import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** Asks `/healthz` of processes all the time, from a thread of its own, so that the test's own work delays nothing. */
export interface HealthProbe {
  /** The longest answer of each process since the last call, in milliseconds, in the order of the URLs. */
  longest(): Promise<number[]>
  close(): Promise<void>
}

const EVERY_MS = 5

const SOURCE = `
const { parentPort, workerData } = require('node:worker_threads')
const http = require('node:http')
const probes = workerData.urls.map((url) => ({ url, agent: new http.Agent({ keepAlive: true }), longest: 0, since: 0 }))
const ask = (probe) => {
  probe.since = performance.now()
  const done = () => {
    probe.longest = Math.max(probe.longest, performance.now() - probe.since)
    probe.since = 0
    setTimeout(ask, workerData.every, probe)
  }
  http.get(probe.url + '/healthz', { agent: probe.agent }, (answer) => answer.resume().on('end', done)).on('error', done)
}
probes.forEach(ask)
parentPort.on('message', () => {
  const now = performance.now()
  parentPort.postMessage(probes.map((probe) => Math.max(probe.longest, probe.since ? now - probe.since : 0)))
  for (const probe of probes) probe.longest = 0
})
`

export async function probeHealth(...urls: string[]): Promise<HealthProbe> {
  const thread = new Worker(SOURCE, { eval: true, execArgv: [], workerData: { urls, every: EVERY_MS } })
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
