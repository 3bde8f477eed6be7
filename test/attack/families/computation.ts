import { ATTACKS, WARM_UP } from '../../support/attacks.ts'
import { clientOf } from '../../support/stack-client.ts'
import type { Family } from '../family.ts'

/** Requests that cost much computation; `test/bounded-computation.alone.test.ts` measures them. */
export const computation: Family = {
  name: 'computation',
  title: 'requests that cost much computation',
  async run({ stack, send, attacker }, tally) {
    const client = await clientOf(stack)
    for (const { run } of WARM_UP) await run(client)
    for (const { name, run } of ATTACKS) {
      const failed = await run(client).then(
        () => undefined,
        (error: Error) => error.message,
      )
      tally.attempt(failed === undefined, `${name}: ${failed}`)
      const { status } = await send('GET', '/v1/objects/contacts?limit=1', {
        Authorization: `Bearer ${attacker.key}`,
      })
      tally.attempt(status === 200, `after ${name} another organization got ${status}`)
    }
  },
}
