import {
  condition,
  defineSignal,
  makeContinueAsNewFunc,
  setHandler,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow'
import type { Testimony } from './protocol.ts'

/** What the witness has to remember from now on. */
export const witnessed = defineSignal<[Testimony]>('witnessed')

/**
 * Remembers in its memo what the database tells it: who owns the task queue, and a number that grows. If it remembers
 * less than the database knows that it did, Temporal was restored to an earlier moment. It never ends.
 */
export async function witness(last: Testimony): Promise<never> {
  const inbox: Testimony[] = []
  setHandler(witnessed, (testimony) => {
    inbox.push(testimony)
  })
  for (;;) {
    await condition(() => inbox.length > 0)
    last = inbox.splice(0).at(-1)!
    upsertMemo({ ...last })
    if (workflowInfo().continueAsNewSuggested)
      await makeContinueAsNewFunc<typeof witness>({ memo: { ...last } })(last)
  }
}
