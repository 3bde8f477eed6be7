import assert from 'node:assert/strict'
import { PACE } from '../../../workflows/bundle/pace.ts'
import { RUN_WORKFLOW_VERSION, type RunInput } from '../../../workflows/bundle/protocol.ts'
import { renewalOf } from '../../../workflows/bundle/renewal.ts'

/** A run with `open` waits and a history of `events`, from 400 of which Temporal suggests a new one. */
function runWith({
  open,
  events,
  calls = true,
  engine = RUN_WORKFLOW_VERSION,
}: {
  open: number
  events: number
  calls?: boolean
  engine?: RunInput['engine']
}) {
  const branches = { size: open, calls }
  const history = { historyLength: events, historySize: 100 * events, continueAsNewSuggested: events >= 400 }
  return { branches, history, renewal: renewalOf(engine, branches, () => history) }
}

describe('a run with a long history', () => {
  it('lets nodes start while its open ones alone would fill a new history', () => {
    for (const calls of [true, false]) {
      const { renewal, branches, history } = runWith({ open: 702, events: 720, calls })
      const look = () => [renewal.isDue(), renewal.update(), renewal.drain]
      assert.deepEqual(look(), [false, false, false])
      history.historyLength = 2 * branches.size
      assert.deepEqual(look(), [false, false, false])
      history.historyLength += 1
      assert.deepEqual(look(), [!calls, false, true])
    }
  })

  it('stops to start nodes until no call is in progress', () => {
    const { renewal, branches, history } = runWith({ open: 3, events: 399 })
    assert.deepEqual([renewal.update(), renewal.drain], [false, false])
    history.continueAsNewSuggested = true
    assert.deepEqual([renewal.isDue(), renewal.update(), renewal.drain], [false, false, true])
    branches.calls = false
    assert.equal(renewal.isDue(), true)
  })

  it('starts nodes again after some looks at calls that take long, until its history is twice as long', () => {
    const { renewal, history } = runWith({ open: 3, events: 400 })
    assert.equal(renewal.update(), false)
    for (let look = 0; look < PACE.drainLooks; look++) {
      assert.deepEqual([renewal.update(), renewal.drain], [false, true])
      renewal.looked(false)
    }
    assert.deepEqual([renewal.update(), renewal.drain], [true, false])
    history.historyLength = 799
    assert.deepEqual([renewal.update(), renewal.drain], [false, false])
    history.historyLength = 800
    assert.deepEqual([renewal.update(), renewal.drain], [false, true])
  })

  it('repeats calls only near the limits of Temporal', () => {
    const { renewal, history } = runWith({ open: 3, events: 40_900 })
    assert.equal(renewal.isDue(), false)
    history.historyLength = 41_000
    assert.equal(renewal.isDue(), true)
  })

  it('of version 4 behaves as its histories were recorded: it also stops where a new one would not be shorter', () => {
    const { renewal } = runWith({ open: 702, events: 720, engine: 4 })
    assert.deepEqual([renewal.isDue(), renewal.update(), renewal.drain], [false, false, true])
  })
})
