import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import proto from '@temporalio/proto'
import { Worker } from '@temporalio/worker'
import { testBundle } from '../support/bundle.ts'

const folder = new URL('../fixtures/histories/', import.meta.url)

/** Runs that started under an older version of the workflows continue under this one. */
describe('stored histories replay', () => {
  const files = readdirSync(folder).sort()
  const load = (file: string) =>
    proto.temporal.api.history.v1.History.decode(readFileSync(new URL(file, folder)))
  /** By one worker: the start of each takes longer than a replay. @returns the error of each history that has one. */
  async function replay(histories: Record<string, ReturnType<typeof load>>) {
    const errors: Record<string, Error | undefined> = {}
    const replayed = Worker.runReplayHistories(
      { workflowBundle: { codePath: await testBundle() } },
      Object.entries(histories).map(([workflowId, history]) => ({ workflowId, history })),
    )
    for await (const { workflowId, error } of replayed) errors[workflowId] = error
    assert.equal(Object.keys(errors).length, Object.keys(histories).length)
    return errors
  }

  let errors: Record<string, Error | undefined>
  before(async () => {
    errors = await replay(Object.fromEntries(files.map((file) => [file, load(file)])))
  })

  for (const file of files)
    it(file.replace('.binpb', '').replaceAll('-', ' '), () => assert.ifError(errors[file]))

  it('except one that other code has recorded', async () => {
    const history = load('branches-with-delay-and-external.binpb')
    const scheduled = history.events.find(
      ({ activityTaskScheduledEventAttributes }) => activityTaskScheduledEventAttributes,
    )
    scheduled!.activityTaskScheduledEventAttributes!.activityType!.name = 'other'
    assert.equal((await replay({ history })).history?.name, 'DeterminismViolationError')
  })

  it('in every shape: the ends of a history, and what it waits for', () => {
    const kinds = new Set<string>()
    for (const file of readdirSync(folder))
      for (const event of load(file).events) for (const kind of Object.keys(event)) kinds.add(kind)
    for (const kind of SHAPES)
      assert.ok(
        kinds.has(`workflowExecution${kind}EventAttributes`) || kinds.has(`${kind}EventAttributes`),
        kind,
      )
  })
})

/** Names of events that a run, a delivery, a file or a node test can have in its history. */
const SHAPES = [
  'Completed',
  'Failed',
  'Canceled',
  'ContinuedAsNew',
  'Signaled',
  'CancelRequested',
  'markerRecorded',
  'timerStarted',
  'timerFired',
  'timerCanceled',
  'workflowTaskFailed',
  'activityTaskScheduled',
  'activityTaskCompleted',
  'activityTaskFailed',
  'activityTaskCancelRequested',
  'activityTaskCanceled',
  'upsertWorkflowSearchAttributes',
]
