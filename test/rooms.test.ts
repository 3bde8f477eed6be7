import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** Who may import whom. The worker alone hosts activities; the API reaches them only through Postgres and Temporal. */
const MAY_IMPORT: Record<string, string[]> = {
  workflows: [],
  db: ['workflows'],
  activities: ['workflows', 'db'],
  worker: ['workflows', 'activities', 'db'],
  api: ['workflows', 'db'],
  test: ['workflows', 'activities', 'db', 'worker', 'api'],
}

const TOP_LEVEL = [
  ...Object.keys(MAY_IMPORT),
  ...[
    'LICENSE',
    'README.md',
    'biome.json',
    'compose.yaml',
    'package-lock.json',
    'package.json',
    'tsconfig.json',
  ],
]

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?from\s*['"]([^'"]+)['"]|\bimport\(?\s*['"]([^'"]+)['"]/g

describe('the rooms of the house', () => {
  it('are the only folders at the top', () => {
    const ignored = ['node_modules', 'coverage']
    const entries = readdirSync(ROOT).filter((name) => !name.startsWith('.') && !ignored.includes(name))
    assert.deepEqual(
      entries.filter((name) => !TOP_LEVEL.includes(name)),
      [],
    )
  })

  for (const [room, allowed] of Object.entries(MAY_IMPORT))
    it(`${room} imports of ours only ${allowed.join(', ') || 'itself'}`, () => {
      const strangers = filesOf(room).flatMap((file) =>
        importsOf(file)
          .filter((path) => path.startsWith('.'))
          .map((path) => relative(ROOT, resolve(dirname(file), path)))
          .filter((target) => ![room, ...allowed].includes(target.split('/')[0]!))
          .map((target) => `${relative(ROOT, file)} imports ${target}`),
      )
      assert.deepEqual(strangers, [])
    })

  it('db/records/model is pure: it imports no file that queries', () => {
    const model = 'db/records/model/'
    const types = ['db/errors.ts', 'db/postgres/tenancy.ts', 'db/incoming/types.ts']
    const strangers = filesOf(model).flatMap((file) =>
      importsOf(file)
        .filter((path) => path.startsWith('.'))
        .map((path) => relative(ROOT, resolve(dirname(file), path)))
        .filter((target) => !/^(workflows|db\/records\/model)\//.test(target) && !types.includes(target))
        .map((target) => `${relative(ROOT, file)} imports ${target}`),
    )
    assert.deepEqual(strangers, [])
    assert.ok(filesOf(model).length > 10)
  })

  it('have files to look at', () => {
    for (const room of Object.keys(MAY_IMPORT)) assert.ok(filesOf(room).length > 0, room)
    assert.deepEqual(importsOf(fileURLToPath(import.meta.url)).slice(0, 2), ['node:assert/strict', 'node:fs'])
  })
})

describe('the workflow bundle', function () {
  this.timeout(60_000)

  it('holds the Temporal SDK and a few files of ours, and neither zod nor yaml nor a Node built-in', async () => {
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(ROOT, 'workflows/index.ts'),
      logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    })
    const modules = sourcesOf(code)
    const ours = modules.filter((path) => !path.includes('node_modules/') && /(^|\/)workflows\//.test(path))
    const packages = modules
      .map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
      .filter((name) => name !== undefined)
    assert.ok(ours.length >= 3 && ours.length <= 20, `${ours.length} files of ours:\n${ours.join('\n')}`)
    assert.deepEqual([...new Set(packages)].filter((name) => !SDK.includes(name)).sort(), [])
    assert.ok(packages.includes('@temporalio/workflow'))
    assert.deepEqual(
      modules.filter((path) => /^(external )?"?node:/.test(path)),
      [],
    )
  })
})

/** What @temporalio/workflow brings with it. */
const SDK = ['@temporalio/workflow', '@temporalio/common', 'long', 'ms', 'nexus-rpc']

function filesOf(room: string): string[] {
  return readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(ROOT, room, path))
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((match) => (match[1] ?? match[2])!)
}

/** The modules of a bundle, from its source map. */
function sourcesOf(code: string): string[] {
  const map = /\/\/# sourceMappingURL=data:application\/json;charset=utf-8;base64,(\S+)/.exec(code)
  assert.ok(map, 'the bundle has no source map')
  return (JSON.parse(Buffer.from(map[1]!, 'base64').toString()) as { sources: string[] }).sources
}
