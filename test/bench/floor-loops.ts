import { v7 as uuidv7 } from 'uuid'
import { connect } from '../../db/postgres/connect.ts'
import { createRecord } from '../../db/records/create.ts'
import { createSchema } from '../../db/records/model/schemas.ts'
import { startFloor } from './floor-temporal.ts'

/**
 * The floor of the bench of loops, in a process of its own: a hand-written workflow with a local activity for each page
 * of 50 items, which creates their records, one after the other, in one transaction. It keeps no rows of what it did.
 * Arguments: database, Temporal, organization, number of items.
 */
const [url, address, organizationId, count] = process.argv.slice(2) as string[]
const PAGE = 50
const db = connect({ url: url! })
const schema = createSchema('companies')

const floor = await startFloor(
  address!,
  () =>
    db.tenant(organizationId!, { type: 'workflow_run', id: uuidv7() }, async (tx) => {
      for (let item = 0; item < PAGE; item++)
        await createRecord(tx, 'companies', schema.parse({ name: `Loop ${item}` }))
    }),
  Number(count) / PAGE,
)
process.on('message', async ({ clients, seconds }: { clients: number; seconds: number }) => {
  process.send?.(await floor.measure(clients, seconds))
})
process.on('disconnect', () => process.exit())
process.send?.({ pages: Number(count) / PAGE })
