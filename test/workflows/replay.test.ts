import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import proto from '@temporalio/proto'
import { Worker } from '@temporalio/worker'
import { workflowBundle } from '../../worker/bundle.ts'

const folder = new URL('../fixtures/histories/', import.meta.url)

/** Runs that started under an older version of the workflows continue under this one. */
describe('stored histories replay', () => {
  let codePath: string
  before(async function () {
    this.timeout(60_000)
    codePath = await workflowBundle(join(tmpdir(), 'agx-test'))
  })
  for (const file of readdirSync(folder).sort())
    it(file.replace('.binpb', '').replaceAll('-', ' '), async () => {
      const history = proto.temporal.api.history.v1.History.decode(readFileSync(new URL(file, folder)))
      await Worker.runReplayHistory({ workflowBundle: { codePath } }, history)
    })
})
