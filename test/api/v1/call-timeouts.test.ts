import { deepEqual, equal } from 'node:assert/strict'
import { withApi } from '../../support/with-api.ts'

describe('the longest timeout of a call', () => {
  const suite = withApi()
  const post = (path: string, timeout: string) => {
    const node = `{type: api_request, config: {url: "https://x.test"}, timeout: ${timeout}, on_error: end}`
    const body = { spec: `name: Slow\nnodes:\n  a: ${node}\n` }
    return suite.api.request('POST', `/v1/workflows${path}`, { body })
  }

  it('is that of the plan: a longer one is an error with its place, and is not saved', async () => {
    const organization = suite.db.system('organizations').where({ id: suite.api.organizationId })
    await organization.clone().update({ plan: 'free' })
    const { body } = await post('/validate', '10m')
    deepEqual(body.errors, [
      {
        code: 'timeout_too_long',
        message: 'the plan allows a timeout of at most 300 s',
        hint: 'write 300s, or less',
        path: '/nodes/a/timeout',
        node_id: 'a',
        line: 3,
        column: 68,
      },
    ])
    const refused = await post('', '10m')
    deepEqual([refused.status, refused.body.error.type], [400, 'workflow_invalid'])
    equal((await post('', '300s')).status, 201)
    await organization.clone().update({ plan: 'professional' })
    equal((await post('', '10m')).status, 201)
  })
})
