import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, Connection } from '@temporalio/client'
import Koa from 'koa'
import { v7 as uuidv7 } from 'uuid'

/**
 * A hand-written service with the same processes as the measured one: a bare Koa handler that starts the floor's
 * workflow on the worker of `floor-runs.ts` and responds with its result, without reading, authenticating or storing
 * the request. Arguments: Temporal, task queue.
 */
const [address, taskQueue] = process.argv.slice(2) as [string, string]
const client = new Client({ connection: await Connection.connect({ address }) })

const app = new Koa()
app.use(async (ctx) => {
  for await (const _ of ctx.req);
  await client.workflow.execute('floor', { taskQueue, workflowId: `floor:${uuidv7()}`, args: [1] })
  ctx.body = { status: 'completed' }
})
const server = createServer(app.callback()).listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => process.exit())
process.send?.({ port: (server.address() as AddressInfo).port })
