import { hasResponse, storeResponse } from '../../db/incoming/responses.ts'
import type { Responses } from '../../workflows/effects/responses.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { type EffectHost, transactionOf } from './define.ts'

/** Answers to senders, stored in the transaction of the node. After a reset the node finds its earlier answer. */
export function responsesOf(host: EffectHost): Responses {
  const tx = transactionOf(host)
  return {
    respond: (response) =>
      host.once(
        'response',
        async (id) => ((await hasResponse(tx, host.runId, id)) ? id : undefined),
        async () => {
          const id = await storeResponse(tx, host.runId, response)
          if (id === undefined)
            throw new NodeError(
              'already_responded',
              'The run has already answered its sender: only the first answer counts.',
            )
          return id
        },
        (id) => id,
      ),
  }
}
