import { startFloor } from './floor-temporal.ts'

/**
 * The floor of the delivery bench, in a process of its own: a hand-written workflow with one local activity that
 * sends one request to the same receiver. Arguments: Temporal, receiver.
 */
const [address, receiver] = process.argv.slice(2) as [string, string]
const body = JSON.stringify({ event: 'bench.done', data: { text: 'x'.repeat(300) } })

const floor = await startFloor(address, async () => {
  const answer = await fetch(receiver, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  await answer.text()
})
process.on('message', async ({ clients, seconds }: { clients: number; seconds: number }) => {
  process.send?.(await floor.measure(clients, seconds))
})
process.on('disconnect', () => process.exit())
process.send?.({})
