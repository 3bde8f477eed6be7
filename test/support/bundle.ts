import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { DataConverter } from '@temporalio/common'
import { workflowBundle } from '../../worker/bundle.ts'
import type { PACE } from '../../workflows/bundle/pace.ts'
import { temporaryFolder } from './folder.ts'

/** The data folder of worker processes that tests start by themselves; it keeps the workflow bundle between runs. */
export const SHARED_DATA = join(tmpdir(), 'agx-test')

/** The path of the workflow bundle of all tests. A build takes several seconds of both cores. */
export const testBundle = (dataConverter?: DataConverter): Promise<string> =>
  workflowBundle(SHARED_DATA, dataConverter)

/** Other values of `PACE` (`workflows/bundle/pace.ts`). */
export type OtherPace = Partial<Record<keyof typeof PACE, string | number>>

/** The path of a bundle whose run workflow has other values of `PACE`. */
export async function bundleWith(pace: OtherPace): Promise<string> {
  let code = readFileSync(await testBundle(), 'utf8')
  for (const [name, value] of Object.entries(pace)) {
    const set = new RegExp(`\\b${name}: ['"\\d][^,}]*`)
    if (!set.test(code)) throw new Error(`the bundle has no ${name}`)
    code = code.replace(set, `${name}: ${JSON.stringify(value)}`)
  }
  const path = join(temporaryFolder(), 'bundle.js')
  writeFileSync(path, code)
  return path
}

/** Puts the bundle into the data folder of a stack, which then need not build it. */
export async function shareBundle(dataDir: string, pace?: OtherPace): Promise<void> {
  const path = await testBundle()
  cpSync(pace ? await bundleWith(pace) : path, join(dataDir, 'bundles', basename(path)))
}
