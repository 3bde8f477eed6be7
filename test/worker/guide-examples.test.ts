import { deepEqual, equal } from 'node:assert/strict'
import { catalogue } from '../../api/v1/catalogue.ts'
import { EXAMPLES } from '../../workflows/authoring/guide/examples.ts'
import { validateSpec } from '../../workflows/authoring/validate.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

describe('the examples of the authoring guide', () => {
  const suite = withWorker()

  const run = async (title: RegExp, inputs: Record<string, unknown> = {}) => {
    const { spec } = EXAMPLES.find((example) => title.test(example.title))!
    const definition = validateSpec(spec, catalogue).definition!
    const given = checkInputs(definition.inputs, inputs).inputs
    return untilRun(suite.db, await queueRun(suite.db, suite.organizationId, definition, given))
  }

  it('save a lead, and make a task for a large one only', async () => {
    const large = await run(/^Save a contact/, { email: 'ada@example.com', company_size: 250 })
    equal(large.status, 'completed', JSON.stringify(large.error))
    const [contact] = await suite.db.system('contacts').where({ email: 'ada@example.com' })
    deepEqual(large.outputs, { contact_id: contact!.id })
    const small = await run(/^Save a contact/, { email: 'alan@example.com' })
    equal(small.status, 'completed', JSON.stringify(small.error))
    const tasks = await suite.db.system('tasks').select('title')
    deepEqual(tasks, [{ title: 'Call ada@example.com' }])
  })

  it('search deals, and stay silent where there are none', async () => {
    const { status, error } = await run(/^Run on a schedule/)
    equal(status, 'completed', JSON.stringify(error))
  })
})
