import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeTypes } from '../workflows/nodes/index.ts'
import { testBundle } from './support/bundle.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** The allowed imports. The worker alone hosts activities; the API reaches them only through Postgres and Temporal. */
const MAY_IMPORT: Record<string, string[]> = {
  workflows: [],
  db: ['workflows'],
  activities: ['workflows', 'db'],
  worker: ['workflows', 'activities', 'db'],
  api: ['workflows', 'db'],
  test: ['workflows', 'activities', 'db', 'worker', 'api'],
}

/** Where node types are defined, and where examples show them. */
const NAME_NODE_TYPES = [
  'workflows/nodes/',
  'workflows/authoring/guide/',
  'workflows/language/finding-codes.ts',
]

/** Folders of which each imports only itself and those before it. Folders that are not named are above all of these. */
const LAYERS: Record<string, string[]> = {
  db: ['model', 'postgres', 'queue', 'process'],
  workflows: ['shared', 'language', 'effects', 'nodes', 'authoring'],
}

/**
 * What may be in db without SQL: the pure model, the services of a process, what belongs to connections, and the list of
 * the purges, which the subjects define.
 */
const WITHOUT_SQL = ['db/model/', 'db/process/', 'db/postgres/', 'db/retention/purges.ts']

const TOP_LEVEL = [
  ...Object.keys(MAY_IMPORT),
  'deploy',
  'docs',
  'CHANGELOG.md',
  'Dockerfile',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'biome.json',
  'compose.yaml',
  'package-lock.json',
  'package.json',
  'tsconfig.json',
]

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?from\s*['"]([^'"]+)['"]|\bimport\(?\s*['"]([^'"]+)['"]/g

/** Files in which the name of a node type is that of something else: a transform of mapping rules, a filter, a tool. */
const TRANSFORMS = [
  'db/model/incoming/types.ts',
  'db/model/incoming/mapping/transforms.ts',
  'api/app/mapping-schema.ts',
]
const ALSO_NAMES: Record<string, string[]> = {
  format_date: ['workflows/language/synonyms.ts', 'activities/sandbox/evaluate.ts'],
  run_workflow: ['api/mcp/grouping.ts', 'api/mcp/tools.ts', 'workflows/language/repair.ts'],
  crm_manager: ['workflows/authoring/path-hints.ts'],
  wait_for_signal: ['db/runs/signals.ts'],
  format_phone: TRANSFORMS,
  convert_currency: TRANSFORMS,
}

describe('the rooms', () => {
  it('are the only top-level folders', () => {
    const ignored = ['node_modules', 'coverage']
    const entries = readdirSync(ROOT).filter((name) => !name.startsWith('.') && !ignored.includes(name))
    assert.deepEqual(
      entries.filter((name) => !TOP_LEVEL.includes(name)),
      [],
    )
  })

  it('have each folder on the map of the README, which names no other', () => {
    const [, map] = readFileSync(join(ROOT, 'README.md'), 'utf8').split('## Map')
    let room: string | undefined
    const missing = map!.split('\n').flatMap((line) => {
      room = /^([a-z]+)\//.exec(line)?.[1] ?? room
      if (room === undefined) return []
      const here = room
      const places = ['', ...foldersIn(here)].map((folder) => join(ROOT, here, folder))
      return [...line.matchAll(/(?<![\w./])([a-z][\w-]*)\//g)]
        .map(([, name]) => name!)
        .filter((name) => name !== here && !places.some((place) => existsSync(join(place, name))))
        .map((name) => `${here}: ${name}`)
    })
    assert.deepEqual(missing, [])
    const rooms = Object.keys(MAY_IMPORT).filter((room) => room !== 'test')
    assert.deepEqual(
      rooms.flatMap(foldersIn).filter((name) => !new RegExp(`\\b${name}/`).test(map!)),
      [],
    )
  })

  for (const [room, allowed] of Object.entries(MAY_IMPORT))
    it(`${room} imports from this project only ${allowed.join(', ') || 'itself'}`, () => {
      const strangers = filesOf(room).flatMap((file) =>
        importsOf(file)
          .filter((path) => path.startsWith('.'))
          .map((path) => relative(ROOT, resolve(dirname(file), path)))
          .filter((target) => ![room, ...allowed].includes(target.split('/')[0]!))
          .map((target) => `${relative(ROOT, file)} imports ${target}`),
      )
      assert.deepEqual(strangers, [])
    })

  it('have no comment or description that begins with "Of": it names what it describes', () => {
    const comment = /(?:\/\*\*|\/\/|^\s*\*) Of /m
    const description = /['"`]Of (?!these,)/
    const rooms = Object.keys(MAY_IMPORT)
    const found = rooms.flatMap((room) =>
      filesOf(room).filter((file) => {
        const source = readFileSync(file, 'utf8')
        return comment.test(source) || (room !== 'test' && description.test(source))
      }),
    )
    assert.deepEqual(found, [])
    assert.ok(
      comment.test(['/**', 'Of another sender. */'].join(' ')) && !comment.test('/** The name of it. */'),
    )
    assert.ok(
      description.test("describe('Of CSV.')") && !description.test("describe('Of these, the open ones.')"),
    )
  })

  it('have no comment that names a file which does not exist', () => {
    const files = Object.keys(MAY_IMPORT).flatMap(filesOf)
    const known = files.map((file) => `/${relative(ROOT, file)}`)
    const missing = (file: string, source: string) =>
      (source.match(COMMENT) ?? [])
        .flatMap((comment) => comment.match(/(?<![\w./-])[\w.-]+(?:\/[\w.-]+)+\.tsx?\b/g) ?? [])
        .filter((path) => !known.some((one) => one.endsWith(`/${path.replace(/^(?:\.\.?\/)+/, '')}`)))
        .map((path) => `${relative(ROOT, file)} names ${path}`)
    assert.deepEqual(
      files.flatMap((file) => missing(file, readFileSync(file, 'utf8'))),
      [],
    )
    assert.equal(missing('a.ts', ['/** See `db/nowhere', 'gone.ts`. */'].join('/')).length, 1)
  })

  it('name node types in workflows/nodes and in examples only', () => {
    const files = Object.keys(MAY_IMPORT)
      .filter((room) => room !== 'test')
      .flatMap(filesOf)
      .filter((file) => !NAME_NODE_TYPES.some((path) => relative(ROOT, file).startsWith(path)))
    const named = files.flatMap((file) =>
      Object.keys(nodeTypes)
        .filter((type) => !ALSO_NAMES[type]?.includes(relative(ROOT, file)))
        .filter((type) => namesType(readFileSync(file, 'utf8'), type))
        .map((type) => `${relative(ROOT, file)} names ${type}`),
    )
    assert.deepEqual(named, [])
    for (const [text, type] of [
      ["node.type === 'stop'", 'stop'],
      ['example: { node_type: "delay" }', 'delay'],
      ['/** As crm_manager does. */', 'crm_manager'],
    ] as const)
      assert.ok(namesType(text, type), text)
    assert.ok(!namesType("action('stop')", 'stop'))
    assert.ok(namesType("type: 'wait_until'", 'wait_until') && !namesType('row.wait_until', 'wait_until'))
  })

  it('db/model has no SQL and imports nothing of db but itself', () => {
    const model = filesOf('db/model')
    assert.ok(model.length > 80)
    const strangers = model.flatMap((file) =>
      targetsOf(file).filter((target) => !/^(workflows|db\/model)\//.test(target)),
    )
    assert.deepEqual(strangers, [])
    const withSql = model.filter((file) => sqlIn(readFileSync(file, 'utf8')).length > 0)
    assert.deepEqual(
      withSql.map((file) => relative(ROOT, file)),
      [],
    )
  })

  it('the subjects of db hold SQL, or take a transaction or a connection; what is pure is in db/model', () => {
    const strangers = filesOf('db')
      .filter((file) => !WITHOUT_SQL.some((path) => relative(ROOT, file).startsWith(path)))
      .filter((file) => !needsDatabase(readFileSync(file, 'utf8')))
    assert.deepEqual(
      strangers.map((file) => relative(ROOT, file)),
      [],
    )
    for (const source of [
      'export const find = (tx: Tenant, id: string) => read(tx, id)',
      "export const END = `now() + interval '6 seconds'`",
      'export const EVENTS = `unnest(:ids) k join events e on e.id = k.id`',
    ])
      assert.ok(needsDatabase(source), source)
    for (const source of [
      'export const messageId = (id: string) => "msg_".concat(id)',
      '/** SQL: now() of tx: Tenant. */\nexport const MS = 5',
      "const a = 'a'\nconst begun = performance.now()\nconst b = 'b'",
      "const hint = 'or select one from the list'",
    ])
      assert.ok(!needsDatabase(source), source)
  })

  for (const [room, layers] of Object.entries(LAYERS))
    it(`${room} is built in layers: ${layers.join(', ')}`, () => {
      const rank = (path: string) => layers.indexOf(path.split('/')[1]!)
      const upward = filesOf(room).flatMap((file) => {
        const path = relative(ROOT, file)
        const own = rank(path)
        return targetsOf(file)
          .filter((target) => own >= 0 && target.startsWith(`${room}/`))
          .filter((target) => rank(target) > own || rank(target) < 0)
          .map((target) => `${path} imports ${target}`)
      })
      assert.deepEqual(upward, [])
    })

  it('have no import circle, of types neither', () => {
    const files = Object.keys(MAY_IMPORT).flatMap(filesOf)
    const graph = new Map(files.map((file) => [relative(ROOT, file), targetsOf(file)]))
    assert.deepEqual(circlesOf(graph), [])
    assert.deepEqual(
      circlesOf(
        new Map([
          ['a', ['b']],
          ['b', ['c']],
          ['c', ['a']],
          ['d', ['a']],
        ]),
      ),
      [['a', 'b', 'c']],
    )
  })

  it('contain files', () => {
    for (const room of Object.keys(MAY_IMPORT)) assert.ok(filesOf(room).length > 0, room)
    assert.deepEqual(importsOf(fileURLToPath(import.meta.url)).slice(0, 2), ['node:assert/strict', 'node:fs'])
  })
})

describe('SQL', () => {
  const outside = Object.keys(MAY_IMPORT).filter((room) => room !== 'db' && room !== 'test')

  it('is in db/ only: no driver, no query builder and no statement in any other room', () => {
    const strangers = outside.flatMap((room) =>
      filesOf(room).flatMap((file) =>
        sqlIn(readFileSync(file, 'utf8')).map((found) => `${relative(ROOT, file)}: ${found}`),
      ),
    )
    assert.deepEqual(strangers, [])
  })

  for (const [what, source] of Object.entries({
    'an import of Knex': "import type { Knex } from 'knex'",
    'an import of the driver': "const { Client } = await import('pg')",
    'a raw statement': 'await db.system.raw(statement)',
    'a raw statement with a type': 'await handle.raw<{ rows: Row[] }>(statement)',
    'a builder on a transaction': "await tx.trx('runs').first()",
    'a transaction that is taken apart': 'const { trx } = tx',
    'a builder on the system role': "await db.system('runs').first()",
    'a builder on a handle with another name': "const sql = db.system\nawait sql('runs').whereIn('id', ids)",
    'a transaction of the system role': 'await db.system.transaction(work)',
    'a statement': 'const CLAIM = `update runs r set lease_until = now()`',
    'a statement that reads': "const FIND = 'select id, name from organizations where id = ?'",
    'a lock': "lock('pg_advisory_xact_lock(1)')",
  }))
    it(`is found: ${what}`, () => assert.equal(sqlIn(source).length > 0, true))

  it('is not found in prose, in comments, or if the handle is only passed on', () => {
    const source = [
      '// tx.trx is a Knex',
      '/** Sends `select 1`, and knex.raw() beside it. */',
      'const holder = await findKeyHolder(db.system, key)',
      "summary: 'Update a record', description: 'Insert a row, or select one from the list.'",
    ].join('\n')
    assert.deepEqual(sqlIn(source), [])
  })
})

describe('the workflow bundle', () => {
  it('holds the Temporal SDK and a few files of this project, but no zod, yaml or Node built-in', async () => {
    const modules = sourcesOf(readFileSync(await testBundle(), 'utf8'))
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

/** Node types that are also the name of a column: like a plain word, they name the type only as a value of `type`. */
const COLUMNS = ['wait_until']

/** Whether a text names a node type: anywhere if the name is two words, as the value of a `type` if it is one. */
const namesType = (text: string, type: string): boolean =>
  type.includes('_') && !COLUMNS.includes(type)
    ? new RegExp(`\\b${type}\\b`).test(text)
    : new RegExp(`type['"]?\\s*(?:[=!]==|:)\\s*['"]${VARIABLES.includes(type) ? '' : '?'}${type}\\b`).test(
        text,
      )

/** Node types that are also the name of a variable: they name the type only in quotes. */
const VARIABLES = ['code']

/** The packages of @temporalio/workflow. */
const SDK = ['@temporalio/workflow', '@temporalio/common', 'long', 'ms', 'nexus-rpc']

/** Allowed in db/ only: the driver, its handles, the builder's methods, the text of a statement. */
const SQL = [
  /\b[Kk]nex\b/,
  /from 'pg'|import\('pg'\)/,
  /\btrx\b/,
  /(?<!String)\.raw\b/,
  /(?<!['"])\bsystem\s*[(<.[]/,
  /\.(where|whereIn|whereNot|whereNull|whereRaw|andWhere|orWhere|returning|onConflict|forUpdate|orderBy|leftJoin)\(/,
  /\b(insert into|delete from) [a-z_]+/,
  /\bupdate [a-z_]+ ([a-z]+ )?set\b/,
  /['"`]\s*(select\b[^'"`]*\bfrom [a-z_]+|with (recursive )?[a-z_]+ as\b)/,
  /\bpg_[a-z_]+\(/,
]

/** The traces of SQL in a source file, without its comments. */
function sqlIn(source: string): string[] {
  const code = codeOf(source)
  return SQL.flatMap((pattern) => pattern.exec(code)?.[0] ?? [])
}

/** A string; a part of a statement in it; a parameter that is a transaction or a connection. */
const STRING = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g
const FRAGMENT = /\bnow\(\)|\(select\b|\bjoin [a-z_]+ [a-z]+ on\b|\b(json|jsonb)_[a-z_]+\(|\bis (not )?null\b/
const CONNECTION = /\b[a-z]+: (Tenant|System|Database|Knex|Audited)\b/

/** Whether a source file holds SQL, or takes a transaction or a connection. */
function needsDatabase(source: string): boolean {
  const code = codeOf(source)
  const strings = code.match(STRING) ?? []
  return sqlIn(source).length > 0 || CONNECTION.test(code) || strings.some((string) => FRAGMENT.test(string))
}

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*/gm
const codeOf = (source: string) => source.replace(COMMENT, '')

const foldersIn = (room: string): string[] =>
  readdirSync(join(ROOT, room), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

function filesOf(room: string): string[] {
  return readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(ROOT, room, path))
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((match) => (match[1] ?? match[2])!)
}

/** The files of this project that a file imports, by their paths in it. */
function targetsOf(file: string): string[] {
  return importsOf(file)
    .filter((path) => path.startsWith('.'))
    .map((path) => relative(ROOT, resolve(dirname(file), path)))
}

/** The groups of files that import each other, directly or not (Tarjan 1972), each sorted. */
function circlesOf(graph: ReadonlyMap<string, string[]>): string[][] {
  const indexes = new Map<string, number>()
  const stack: string[] = []
  const circles: string[][] = []
  const visit = (file: string): number => {
    const index = indexes.size
    indexes.set(file, index)
    stack.push(file)
    let low = index
    for (const target of graph.get(file) ?? []) {
      if (!indexes.has(target)) low = Math.min(low, visit(target))
      else if (stack.includes(target)) low = Math.min(low, indexes.get(target)!)
    }
    if (low === index) {
      const circle = stack.splice(stack.indexOf(file)).sort()
      if (circle.length > 1) circles.push(circle)
    }
    return low
  }
  for (const file of graph.keys()) if (!indexes.has(file)) visit(file)
  return circles
}

/** The modules of a bundle, from its source map. */
function sourcesOf(code: string): string[] {
  const map = /\/\/# sourceMappingURL=data:application\/json;charset=utf-8;base64,(\S+)/.exec(code)
  assert.ok(map, 'the bundle has no source map')
  return (JSON.parse(Buffer.from(map[1]!, 'base64').toString()) as { sources: string[] }).sources
}
