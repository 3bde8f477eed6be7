import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pythonWith } from '../../support/python.ts'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

const run = promisify(execFile)
const GENERATOR = 'openapi-python-client==0.29.1'
const TOUR = fileURLToPath(new URL('../../fixtures/python-client/tour.py', import.meta.url))

describe('a Python client generated from /openapi.json', () => {
  const suite = withApi()
  let worker: TestWorker | undefined
  let folder = ''
  let python = ''

  before(async function () {
    try {
      python = await pythonWith(GENERATOR)
    } catch (error) {
      const [missing] = (error as Error).message.split('\n')
      process.stdout.write(`    skipped: needs python3 with venv and PyPI: ${missing}\n`)
      this.skip()
    }
    worker = await startWorker(suite.db)
    folder = mkdtempSync(join(tmpdir(), 'agx-python-client-'))
    // The generator waits five seconds, in which a busy machine may not make the document.
    assert.equal((await fetch(`${suite.api.url}/openapi.json`)).status, 200)
    const { stdout, stderr } = await run(python, [
      '-m',
      'openapi_python_client',
      'generate',
      '--url',
      `${suite.api.url}/openapi.json`,
      '--meta',
      'none',
      '--output-path',
      join(folder, 'agx_client'),
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
