import { v7 as uuidv7 } from 'uuid'
import { createSchema } from '../../db/model/records/schemas.ts'
import { connect } from '../../db/postgres/connect.ts'
import { createMany, createRecord } from '../../db/records/create.ts'
import { startFloor } from './floor-temporal.ts'

/**
 * The floors of the bench of loops, in a separate process: a hand-written workflow with a local activity for each page
 * of items, which creates their records in one transaction. It records no progress. Arguments: database, Temporal,
 * organization, number of items, and how a page creates its records: `each`, one after the other, in pages of 50;
 * `together`, in one statement, in pages of 100, as a run does.
 */
const [url, address, organizationId, count, how] = process.argv.slice(2) as string[]
const PAGE = how === 'together' ? 100 : 50
const db = connect({ url: url! })
const schema = createSchema('companies')
const parsed = (item: number) => schema.parse({ name: `Loop ${item}` })
const items = Array.from({ length: PAGE }, (_, item) => item)

const floor = await startFloor(
  address!,
  () =>
    db.tenant(organizationId!, { type: 'workflow_run', id: uuidv7() }, async (tx) => {
      if (how === 'together') await createMany(tx, 'companies', items.map(parsed))
      else for (const item of items) await createRecord(tx, 'companies', parsed(item))
    }),
  Number(count) / PAGE,
)
process.on('message', async ({ clients, seconds }: { clients: number; seconds: number }) => {
  process.send?.(await floor.measure(clients, seconds))
})
process.on('disconnect', () => process.exit())
process.send?.({ pages: Number(count) / PAGE })
