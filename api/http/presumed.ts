import { isDeepStrictEqual } from 'node:util'
import type Koa from 'koa'
import type { Send } from '../../db/postgres/transaction.ts'
import type { Caller } from './scopes.ts'

/** The caller that a credential had at its last look-up. */
export interface Presumed {
  caller: Caller
  /** Whether it is still the caller, by a statement in a transaction of its organization. */
  isConfirmed(send: Send): Promise<boolean>
}

/**
 * Answers a read as the presumed caller. The statement that confirms the caller travels with the first transaction of the
 * handler, so that a read takes one round trip in all instead of two. If it does not confirm, the caller is authenticated
 * as for any other request before anything leaves, and if that gives another caller, or none, the answer is dropped.
 * Gain: without it GET of one record by one client takes 1.2 to 1.4 times the CPU time of API and PostgreSQL, and 1.2 to
 * 1.6 times as long (`npm run bench -- records --only=access`). Tested by presumed.test.ts and round-trips.test.ts.
 */
export async function answerPresumed(
  ctx: Koa.Context,
  { caller: presumed, isConfirmed }: Presumed,
  authenticate: () => Promise<Caller | undefined>,
  answer: (caller: Caller | undefined, afterBegin?: (send: Send) => void) => Promise<void>,
): Promise<void> {
  const before = new Set(ctx.res.getHeaderNames())
  let confirmation: Promise<'confirmed' | 'refuted' | 'failed'> | undefined
  const confirm = (send: Send) => {
    confirmation ??= isConfirmed(send).then(
      (is) => (is ? 'confirmed' : 'refuted'),
      () => 'failed',
    )
  }
  const [answered] = await Promise.allSettled([answer(presumed, confirm)])
  const finish = () => {
    if (answered.status === 'rejected') throw answered.reason
  }
  const outcome = await confirmation
  if (outcome === 'confirmed') return finish()

  const drop = () => {
    for (const name of ctx.res.getHeaderNames()) if (!before.has(name)) ctx.res.removeHeader(name)
    ctx.state.organization = undefined
  }
  const caller = await authenticate().catch((error) => {
    drop()
    throw error
  })
  // With the statement its whole transaction failed, and the answer tells of nothing else.
  if (outcome !== 'failed' && isDeepStrictEqual(caller, presumed)) return finish()
  drop()
  await answer(caller)
}
