import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Answer } from '../../support/answer.ts'
import { assertDeclared } from '../../support/declared.ts'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** The exports of the fixture. A static import is impossible: its client is generated at run time. */
interface Fixture {
  Agx: new (baseUrl: string, key: string, customFetch: typeof fetch) => object
  tour: (agx: object) => Promise<void>
}

describe('a client generated from /openapi.json', () => {
  const suite = withApi()
  let worker: TestWorker
  let folder: string

  before(async () => {
    worker = await startWorker(suite.db)
    folder = mkdtempSync(join(tmpdir(), 'agx-client-'))
    cpSync(join(ROOT, 'test/fixtures/client'), folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
    const { generateApi } = await import('swagger-typescript-api')
    await generateApi({
      url: `${suite.api.url}/openapi.json`,
      output: folder,
      fileName: 'agx.ts',
      moduleNameFirstTag: true,
      silent: true,
    })
  })
  after(async () => {
    await worker?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })

  it('has types with which a program on all six kinds compiles', async () => {
    const options = {
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: {
        lib: ['es2023', 'dom', 'dom.iterable'],
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
        // Generated code has enums and unused declarations.
        erasableSyntaxOnly: false,
        verbatimModuleSyntax: false,
      },
      include: ['*.ts'],
      exclude: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options))
    const tsc = join(ROOT, 'node_modules/.bin/tsc')
    const { stdout } = await promisify(execFile)(tsc, ['-p', folder]).catch((failed) => failed)
    assert.equal(stdout, '')
  })

  it('runs the tour, and every answer matches the document', async () => {
    const load = (file: string) => import(pathToFileURL(join(folder, file)).href) as Promise<Fixture>
    const { Agx } = await load('client.ts')
    const { tour } = await load('tour.ts')
    const answered = new Map<number, number>()
    const checking: typeof fetch = async (input, init) => {
      const url = new URL(String(input))
      const response = await fetch(input, init)
      const { status, headers } = response
      assertDeclared(init?.method ?? 'GET', url.pathname + url.search, {
        status,
        headers,
        body: await read(response.clone()),
      })
      answered.set(status, (answered.get(status) ?? 0) + 1)
      return response
    }
    await tour(new Agx(suite.api.url, suite.api.key, checking))
    assert.ok(answered.get(200)! > 100, 'the tour is complete')
    assert.deepEqual([...answered.keys()].sort(), [200, 201, 404, 412, 422])
  })
})

async function read(response: Response): Promise<Answer['body']> {
  const text = await response.text()
  return response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text
}
