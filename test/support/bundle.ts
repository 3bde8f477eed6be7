import { cpSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { DataConverter } from '@temporalio/common'
import { workflowBundle } from '../../worker/bundle.ts'

/** The data folder of worker processes that tests start by themselves; it keeps the workflow bundle between runs. */
export const SHARED_DATA = join(tmpdir(), 'agx-test')

/** The path of the workflow bundle of all tests. A build takes several seconds of both cores. */
export const testBundle = (dataConverter?: DataConverter): Promise<string> =>
  workflowBundle(SHARED_DATA, dataConverter)

/** Puts the bundle into the data folder of a stack, which then need not build it. */
export async function shareBundle(dataDir: string): Promise<void> {
  const path = await testBundle()
  cpSync(path, join(dataDir, 'bundles', basename(path)))
}
