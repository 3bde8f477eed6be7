import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../support/folder.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SOURCES = ['package.json', 'tsconfig.json', 'activities', 'api', 'db', 'worker', 'workflows']

describe('worker/run.mjs', () => {
  let folder: string
  beforeEach(() => {
    folder = temporaryFolder()
    for (const name of SOURCES) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
    mkdirSync(join(folder, 'node_modules'))
    for (const name of readdirSync(join(ROOT, 'node_modules')))
      if (name !== '.cache') symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const cache = () => join(folder, 'node_modules/.cache/agx')
  /** The stderr of an entry that exits. */
  const run = (entry: string, env: Record<string, string> = {}): Promise<string> =>
    new Promise((resolve) => {
      const options = { cwd: folder, env: { ...process.env, NODE_V8_COVERAGE: '', ...env } }
      execFile(process.execPath, ['worker/run.mjs', entry], options, (_error, _stdout, stderr) =>
        resolve(stderr),
      )
    })
  const refusal = /PORT must be a port number/

  it('runs an entry, and compiles again only what has changed', async () => {
    for (const _ of ['compiles', 'finds it compiled'])
      assert.match(await run('api/main.ts', { PORT: 'x' }), refusal)
    const [first, ...others] = readdirSync(cache())
    assert.deepEqual(others, [])
    assert.ok(existsSync(join(cache(), first!, 'worker/main.mjs')))
    appendFileSync(join(folder, 'db/process/config.ts'), '\n// changed\n')
    assert.match(await run('worker/main.ts', { WORKER_PORT: 'x' }), refusal)
    assert.equal(readdirSync(cache()).length, 2)
  })

  it('runs an entry where nothing can be written', async () => {
    writeFileSync(join(folder, 'node_modules/.cache'), 'not a folder')
    assert.match(await run('api/main.ts', { PORT: 'x' }), refusal)
  })

  it('keeps the places of errors in the sources', async () => {
    writeFileSync(join(folder, 'api/main.ts'), "\n\nthrow new Error('broken')\n")
    assert.match(await run('api/main.ts'), /api\/main\.ts:3/)
  })
})
