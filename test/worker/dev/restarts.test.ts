import { until } from '../../support/until.ts'
import { withStack } from '../../support/with-stack.ts'

describe('npm start with PostgreSQL and Temporal of others', () => {
  const on = withStack()

  it('starts the api and the worker again that end at the same time', async () => {
    for (const name of ['api', 'worker'] as const) on.stack.kill(name)
    for (const url of [on.stack.apiUrl, on.stack.workerUrl])
      await until(async () => (await fetch(`${url}/readyz`)).ok, on.stack.output, 60)
  })
})
