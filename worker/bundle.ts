import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { DataConverter } from '@temporalio/common'
import { bundleWorkflowCode } from '@temporalio/worker'

const SOURCES = fileURLToPath(new URL('../workflows/', import.meta.url))

/**
 * The path of the workflow bundle, which is built if the sources or the SDK have changed. A child process builds it:
 * webpack would keep some 100 MB of the worker's memory. Another failure converter makes another bundle.
 */
export async function workflowBundle(
  dataDir: string,
  { failureConverterPath }: Pick<DataConverter, 'failureConverterPath'> = {},
): Promise<string> {
  const folder = join(dataDir, 'bundles')
  const kind = failureConverterPath === undefined ? '' : '-encoded'
  const path = join(folder, `${await fingerprint()}${kind}.js`)
  if (await exists(path)) return path
  await mkdir(folder, { recursive: true })
  await promisify(execFile)(process.execPath, [
    '--import',
    'tsx',
    fileURLToPath(import.meta.url),
    path,
    ...(failureConverterPath ? [failureConverterPath] : []),
  ])
  return path
}

/** Hashes the SDK version and every file that the bundle can contain. */
async function fingerprint(): Promise<string> {
  const require = createRequire(import.meta.url)
  const hash = createHash('sha256').update(require('@temporalio/workflow/package.json').version)
  for (const folder of ['bundle/', 'interpret/', 'language/', 'shared/'])
    for (const file of (await readdir(join(SOURCES, folder))).sort())
      if (file.endsWith('.ts')) hash.update(file).update(await readFile(join(SOURCES, folder, file)))
  return hash.digest('hex').slice(0, 16)
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Runs in the child process. Writes to a temporary file and renames it: a partial bundle is never visible. */
async function build(path: string, failureConverterPath: string | undefined): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(SOURCES, 'bundle/index.ts'),
    ...(failureConverterPath !== undefined && { failureConverterPath }),
  })
  const temporary = `${path}.${process.pid}`
  await writeFile(temporary, code)
  await rename(temporary, path)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build(process.argv[2]!, process.argv[3])
