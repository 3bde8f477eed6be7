import { Slots } from '../../api/http/slots.ts'
import { SentBytes } from '../../db/postgres/sent-bytes.ts'
import { Shares } from '../../db/postgres/shares.ts'
import { QueuedRuns } from '../../db/runs/queued-runs.ts'

/**
 * An api process whose shares and quotas a signal turns off and on again: turns at connections, bytes that are counted,
 * slots of clients, and the places of queued runs. The switch is here, so that the service has none.
 */
const places: [prototype: object, method: string, without: unknown][] = [
  [Shares.prototype, 'run', (_: string, work: () => unknown) => work()],
  [SentBytes.prototype, 'add', () => {}],
  [Slots.prototype, 'tryToTake', () => () => {}],
  [
    QueuedRuns.prototype,
    'take',
    async (_: unknown, __: string, wanted = 1) => ({ granted: wanted, limit: 1 }),
  ],
]
const own = places.map(([prototype, method]) => Object.getOwnPropertyDescriptor(prototype, method)!)
let isOn = true
process.on('SIGUSR2', () => {
  isOn = !isOn
  for (const [i, [prototype, method, without]] of places.entries())
    Object.defineProperty(prototype, method, isOn ? own[i]! : { ...own[i], value: without })
})

await import('../../api/main.ts')
