import { deepEqual } from 'node:assert/strict'
import { appRoutes } from '../api/app/route-table.ts'
import { routes } from '../api/v1/route-table.ts'
import { nodeTypes } from '../workflows/nodes/index.ts'
import { ATTACKS } from './support/attacks.ts'
import { FREE, WORK, type Work } from './support/computation.ts'

describe('the list of what tenants choose to compute', () => {
  const kinds: Work[] = Object.values(WORK)

  it('has each node type once, or declares it free', () => {
    const listed = [...kinds.flatMap(({ nodes = [] }) => nodes), ...FREE.nodes]
    deepEqual(listed.toSorted(), Object.keys(nodeTypes).toSorted())
  })

  it('has each route with a body, a file or a query once, or declares it free', () => {
    const withInput = [...routes, ...appRoutes]
      .filter((route) => ['body', 'query', 'accepts'].some((member) => member in route))
      .map(({ id }) => id.replace(/WithKey$/, ''))
    const listed = [...kinds.flatMap(({ routes = [] }) => routes), ...FREE.routes]
    // A receiver has no entry in the tables.
    const others = ['receiveWebhook']
    deepEqual(listed.filter((id) => !others.includes(id)).toSorted(), [...new Set(withInput)].toSorted())
  })

  it('has an attack of each kind', () => {
    const attacked = new Set(ATTACKS.map(({ kind }) => kind as string))
    deepEqual(
      Object.keys(WORK).filter((kind) => !attacked.has(kind)),
      [],
    )
  })
})
