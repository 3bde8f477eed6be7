import { applyAll, withFittingCustomFields } from '../../db/incoming/apply.ts'
import { insertLogs, type NewLog } from '../../db/incoming/logs.ts'
import { claimDeliveries, type DeliveryAnswer, storeDeliveries } from '../../db/incoming/receiving.ts'
import type { Actor } from '../../db/model/actor.ts'
import { LOG_ACTION_OF } from '../../db/model/incoming/log-values.ts'
import type { Mapped } from '../../db/model/incoming/mapping/types.ts'
import type { Payload } from '../../db/model/incoming/parse-body.ts'
import { TryFewer } from '../../db/postgres/batcher.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { isDatabaseUnavailable, sqlState } from '../../db/postgres/sql-state.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Failed } from '../../db/records/sets.ts'
import { traceOf } from '../http/trace.ts'
import { baseLog, type Call } from './call.ts'

/** A request of which nothing is left to check but what the database knows. */
export interface Accepted {
  call: Call
  payload: Payload
  /** From `fitted`, or its error. */
  mapped: Mapped | Failed
}

/**
 * Writes the deliveries, the records with their histories and events, the runs and the log rows of requests to one
 * webhook in one transaction. Throws TryFewer if one of them cannot be written.
 * @returns the answers.
 */
export async function writeTogether(db: Database, all: Accepted[]): Promise<object[]> {
  const { id, organization_id } = all[0]!.call.webhook
  const actor: Actor = { type: 'webhook', id }
  let isEnding = false
  try {
    return await db.tenant(organization_id, actor, async (tx) => {
      isEnding = false
      const answers = await perform(tx, all)
      isEnding = true
      return answers
    })
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error
    // A statement that PostgreSQL refused rolls back; of another error during the commit the outcome is unknown.
    throw !isEnding || sqlState(error) ? new TryFewer(error) : error
  }
}

async function perform(tx: Tenant, all: Accepted[]): Promise<object[]> {
  const { webhook } = all[0]!.call
  const earlier = await earlierAnswers(tx, all)
  const fresh = all.filter((one) => !earlier.has(one))
  const toApply = []
  for (const { call, payload, mapped } of fresh) {
    if ('error' in mapped) throw mapped.error
    call.mapped = await withFittingCustomFields(tx, webhook, mapped)
    toApply.push({ payload, mapped: call.mapped, trace: traceOf(call.ctx) })
  }
  const applied = new Map((await applyAll(tx, webhook, toApply)).map((one, i) => [fresh[i]!, one]))
  const entity = webhook.target_entity.toLowerCase()
  const done = all.map((one): Done => {
    const repeated = earlier.get(one)
    if (repeated) {
      const warnings = ['duplicate delivery: nothing was written']
      return {
        ...one,
        answer: repeated,
        message: 'already received',
        warnings: [],
        log: { action: 'Skipped', warnings },
      }
    }
    const { record, action, runId, warnings } = applied.get(one)!
    const answer = { record_id: record.id, entity, action }
    return { ...one, answer, message: `${entity} ${action}`, warnings, log: { run_id: runId, warnings } }
  })
  const claimed = done.filter(({ call }, i) => call.delivery!.has_delivery_id && !earlier.has(all[i]!))
  await storeDeliveries(
    tx,
    webhook.id,
    claimed.map(({ call, answer }) => ({ fingerprint: call.delivery!.fingerprint, answer })),
  )
  await insertLogs(tx, done.map(logOf))
  return done.map(({ answer, message, warnings }) => ({
    success: true,
    message,
    ...answer,
    ...(warnings.length > 0 ? { warnings } : {}),
  }))
}

/** What a request has written, or an earlier one of the same delivery. */
interface Done extends Accepted {
  answer: DeliveryAnswer
  message: string
  warnings: string[]
  log: Partial<NewLog>
}

/** The stored answers of deliveries that were received before; claims the others. */
async function earlierAnswers(tx: Tenant, all: Accepted[]): Promise<Map<Accepted, DeliveryAnswer>> {
  const known = all.filter(({ call }) => call.delivery!.has_delivery_id)
  const answers = await claimDeliveries(
    tx,
    all[0]!.call.webhook.id,
    known.map(({ call }) => call.delivery!.fingerprint),
  )
  return new Map(known.flatMap((one, i) => (answers[i] ? [[one, answers[i]] as const] : [])))
}

const logOf = ({ call, answer: { action, record_id }, message, log }: Done): NewLog => ({
  ...baseLog(call),
  action: LOG_ACTION_OF[action],
  record_id,
  message,
  ...log,
})
