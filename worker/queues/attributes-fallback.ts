import type { Logger } from '../../db/process/log.ts'
import { refusal } from '../relay.ts'

/**
 * Calls Temporal with our search attributes, and once more without them if the namespace lacks them. Later calls omit
 * them from the start.
 */
export type WithFallback = <T>(call: (omitAttributes: boolean) => Promise<T>) => Promise<T>

export function attributesFallback(log: Logger): WithFallback {
  let lacking = false
  return async (call) => {
    // Calls that fail at the same time each repeat: what counts is what this one has sent.
    const omitted = lacking
    try {
      return await call(omitted)
    } catch (error) {
      const reason = refusal(error) ?? ''
      if (omitted || !/search attribute/i.test(reason)) throw error
      if (!lacking)
        log.warn(
          { reason },
          'the namespace lacks search attributes (AgxOrganization, …): workflows and schedules start without them',
        )
      lacking = true
      return call(true)
    }
  }
}
