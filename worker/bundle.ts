import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { bundleWorkflowCode } from '@temporalio/worker'

const SOURCES = fileURLToPath(new URL('../workflows/', import.meta.url))

/**
 * The path of the workflows' bundle, built when their sources or the SDK have changed. A child process builds it,
 * for webpack would keep some 100 MB of the worker's memory.
 */
export async function workflowBundle(dataDir: string): Promise<string> {
  const folder = join(dataDir, 'bundles')
  const path = join(folder, `${await fingerprint()}.js`)
  if (await exists(path)) return path
  await mkdir(folder, { recursive: true })
  await promisify(execFile)(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), path])
  return path
}

/** Of the files that can be in the bundle. */
async function fingerprint(): Promise<string> {
  const require = createRequire(import.meta.url)
  const hash = createHash('sha256').update(require('@temporalio/workflow/package.json').version)
  for (const folder of ['', 'interpret/', 'definition/'])
    for (const file of (await readdir(join(SOURCES, folder))).sort())
      if (file.endsWith('.ts')) hash.update(file).update(await readFile(join(SOURCES, folder, file)))
  return hash.digest('hex').slice(0, 16)
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** The child's part: written beside and renamed, so that a half-written bundle is never found. */
async function build(path: string): Promise<void> {
  const { code } = await bundleWorkflowCode({ workflowsPath: join(SOURCES, 'index.ts') })
  const beside = `${path}.${process.pid}`
  await writeFile(beside, code)
  await rename(beside, path)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build(process.argv[2]!)
