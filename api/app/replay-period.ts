import { invalid } from '../../db/model/errors.ts'

/** The period of a replay; `until` is now by default. Throws validation_error if it is empty. */
export function periodOf({ since, until }: { since: string; until?: string | undefined }) {
  const period = { since: new Date(since), until: until ? new Date(until) : new Date() }
  if (period.since < period.until) return period
  const loc = ['body', until ? 'until' : 'since']
  throw invalid([
    {
      loc,
      type: 'empty_period',
      msg: until ? 'is not after since' : 'is in the future',
      hint: 'since must be before until, which is now by default',
    },
  ])
}
