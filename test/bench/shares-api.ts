import { Slots } from '../../api/http/slots.ts'
import { SentBytes } from '../../db/postgres/sent-bytes.ts'
import { Shares } from '../../db/postgres/shares.ts'
import { QueuedRuns } from '../../db/runs/queued-runs.ts'

/**
 * An api process whose shares and quotas a signal turns off and on again: turns at connections, bytes that are counted,
 * slots of clients, and the places of queued runs. The switch is here, so that the service has none. It is a condition
 * within each method: a method that is replaced while it is in use makes V8 compile its callers again.
 */
const state = { isOn: true }
process.on('SIGUSR2', () => {
  state.isOn = !state.isOn
})

const { run } = Shares.prototype
Shares.prototype.run = function <T>(organizationId: string, work: () => Promise<T>) {
  return state.isOn ? (run.call(this, organizationId, work) as Promise<T>) : work()
}
const { counterOf } = SentBytes.prototype
SentBytes.prototype.counterOf = function (organizationId) {
  return state.isOn ? counterOf.call(this, organizationId) : undefined
}
const { tryToTake } = Slots.prototype
const release = () => {}
Slots.prototype.tryToTake = function (organizationId, callerId) {
  return state.isOn ? tryToTake.call(this, organizationId, callerId) : release
}
const { take } = QueuedRuns.prototype
QueuedRuns.prototype.take = async function (db, organizationId, wanted = 1) {
  return state.isOn ? take.call(this, db, organizationId, wanted) : { granted: wanted, limit: wanted }
}

await import('../../api/main.ts')
