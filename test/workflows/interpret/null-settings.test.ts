import { equal, match } from 'node:assert/strict'
import { executeNode } from '../../support/execute-node.ts'

describe('a setting whose placeholder is null', () => {
  const messageFor = async (type: string, config: Record<string, unknown>) => {
    const { error, status } = (await executeNode(type, config, { scope: { inputs: { x: null } } })) as {
      status: string
      error?: { message: string }
    }
    equal(status, 'failed')
    return error!.message
  }

  it('may be left out where the node does the same without it', async () => {
    const mail = { to: 'ada@example.com', subject: 's', text: 't', reply_to: '{{ inputs.x }}' }
    match(await messageFor('send_email', mail), /omit_if_empty/)
  })

  it('is tested before where the node needs it, or would await any record without it', async () => {
    const tested = /its placeholder is null: test it before, such as by `when: "\{\{ … != null \}\}"`$/
    match(await messageFor('wait_until', { until: '{{ inputs.x }}' }), tested)
    const wait = { event: 'deal.won', record_id: '{{ inputs.x }}' }
    match(await messageFor('wait_for_event', wait), tested)
  })
})
