import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

const run = promisify(execFile)
const GENERATOR = 'openapi-python-client==0.29.1'
/** Cached for the next run. */
const VENV = join(tmpdir(), `agx-${GENERATOR}`)
const TOUR = fileURLToPath(new URL('../../fixtures/python-client/tour.py', import.meta.url))

describe('a Python client generated from /openapi.json', function () {
  this.timeout(120_000)
  const suite = withApi()
  let worker: TestWorker | undefined
  let folder = ''
  let python = ''

  before(async function () {
    const missing = await prepareVenv().then(
      () => undefined,
      (error: Error) => error.message.split('\n')[0],
    )
    if (missing) {
      process.stdout.write(`    skipped: needs python3 with venv and PyPI: ${missing}\n`)
      this.skip()
    }
    python = pythonOf(VENV)
    worker = await startWorker(suite.db)
    folder = mkdtempSync(join(tmpdir(), 'agx-python-client-'))
    const { stdout, stderr } = await run(python, [
      ...['-m', 'openapi_python_client', 'generate', '--url', `${suite.api.url}/openapi.json`],
      ...['--meta', 'none', '--output-path', join(folder, 'agx_client')],
    ])
    const refused = (stdout + stderr).match(/WARNING parsing .*Endpoint will not be generated\./g)
    // The generator does not support CSV bodies.
    assert.deepEqual(refused, [
      'WARNING parsing PUT /v1/imports/{import_id}/file within imports. Endpoint will not be generated.',
    ])
  })
  after(async () => {
    await worker?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })

  it('imports every module and runs a tour: create, list with filters, associate, run a workflow', async () => {
    const env = { ...process.env, PYTHONPATH: folder }
    const { stdout } = await run(python, [TOUR, suite.api.url, suite.api.key], { env })
    const [, modules] = /^imported (\d+) modules, finished the tour$/m.exec(stdout)!
    assert.ok(Number(modules) > 300, `${modules} modules`)
  })

  it('has short class names', async () => {
    const script = 'import agx_client.models as m; print("\\n".join(m.__all__))'
    const { stdout } = await run(python, ['-c', script], { env: { ...process.env, PYTHONPATH: folder } })
    const names = stdout.trim().split('\n')
    assert.ok(names.length > 200)
    assert.deepEqual(
      names.filter((name) => name.length >= 60),
      [],
    )
  })
})

const pythonOf = (venv: string) => join(venv, 'bin', 'python')

/** A virtual environment with the generator, in a temporary folder. Throws without python3, venv or PyPI. */
async function prepareVenv(): Promise<void> {
  if (existsSync(VENV)) return
  const made = mkdtempSync(join(tmpdir(), 'agx-venv-'))
  try {
    await run('python3', ['-m', 'venv', made])
    const quiet = ['--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '10']
    await run(pythonOf(made), ['-m', 'pip', 'install', ...quiet, GENERATOR])
    renameSync(made, VENV)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    // Another process may have created it.
    if (!existsSync(VENV)) throw error
  }
}
