/**
 * What a thread of the pool runs. It is JavaScript, for Node 20 starts threads without the loaders of their process: it
 * registers the one for TypeScript first.
 */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { register } from 'tsx/esm/api'

// On Linux a priority is a thread's own: the event loop of the process goes first.
if (process.platform === 'linux') setPriority(5)
register()
const loaded = import(workerData.module)
loaded.catch(() => {})

parentPort.on('message', async ({ name, values }) => {
  try {
    const { tasks } = await loaded
    // The deadline counts from here: to start a thread is no work of the task.
    parentPort.postMessage({ begun: true })
    parentPort.postMessage({ value: await tasks[name](...values) })
  } catch (error) {
    parentPort.postMessage({ error: String(error?.stack ?? error) })
  }
})
