import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { compile } from '../../../workflows/authoring/compile.ts'
import { LANGUAGE_ENGINE, LATER_LANGUAGE, type NodeSpec } from '../../../workflows/language/definition.ts'
import { ENGINE } from '../../../workflows/nodes/engine.ts'
import { nodeTypes } from '../../../workflows/nodes/index.ts'

/** The engines of one version: of the language, and of each node type and its later uses. */
interface Engines {
  language: number
  /** The engines of later features of the language. */
  later?: Record<string, number>
  types: Record<string, readonly number[]>
}

/** The engines of the last release. RECORD_ENGINES=1 writes those of this version, when package.json has a new one. */
const FILE = new URL('../../fixtures/released-engines.json', import.meta.url)
const readJson = (url: URL) => JSON.parse(readFileSync(url, 'utf8'))
const { version } = readJson(new URL('../../../package.json', import.meta.url)) as { version: string }

const current: Engines = {
  language: LANGUAGE_ENGINE,
  later: LATER_LANGUAGE,
  types: Object.fromEntries(Object.values(nodeTypes).map(({ type, engines }) => [type, engines])),
}

const greatest = ({ language, later = {}, types }: Engines) =>
  Math.max(language, ...Object.values(later), ...Object.values(types).flat())

/**
 * What is wrong with the engines of a version after `released`: workers of that release would run programs that they
 * do not know, or programs that they have stored would need another engine.
 */
function problemsOf(engines: Engines, released: Engines): string[] {
  const last = greatest(released)
  const isKnown = (name: string, engine: number) =>
    engine > last ? [] : [`${name} names engine ${engine}, which is released: name ${last + 1}`]
  const ofTypes = Object.entries(engines.types).flatMap(([type, numbers]) => {
    const before = released.types[type] ?? []
    const kept = before.every((engine, n) => engine === numbers[n])
    if (!kept) return [`${type} was released with the engines ${before.join(', ')}`]
    return numbers.slice(before.length).flatMap((engine) => isKnown(type, engine))
  })
  const ofLanguage = engines.language === released.language ? [] : isKnown('the language', engines.language)
  const ofLater = Object.entries(engines.later ?? {})
    .filter(([name, engine]) => released.later?.[name] !== engine)
    .flatMap(([name, engine]) => isKnown(name, engine))
  const gone = Object.keys(released.types)
    .filter((type) => !Object.hasOwn(engines.types, type))
    .map((type) => `${type} was released: stored programs name it`)
  return [...ofLanguage, ...ofLater, ...ofTypes, ...gone]
}

describe('the engine', () => {
  it('of a new node type, a new use of one, or a new language is greater than every released one', () => {
    const { version: last, ...released } = readJson(FILE) as Engines & { version: string }
    assert.deepEqual(problemsOf(current, released), [])
    if (process.env.RECORD_ENGINES)
      writeFileSync(FILE, `${JSON.stringify({ version, ...current }, null, 2)}\n`)
    else assert.equal(last, version, 'a new version: record its engines with RECORD_ENGINES=1')
  })

  it('is refused if a worker of the last release would claim what it cannot run', () => {
    const released: Engines = { language: 1, types: { stop: [1, 2], approval: [3] } }
    const refused = (change: Partial<Engines>) => problemsOf({ ...released, ...change }, released)
    const withTypes = (types: Engines['types']) => refused({ types: { ...released.types, ...types } })
    assert.deepEqual(withTypes({ fax: [4], stop: [1, 2, 5] }), [])
    assert.deepEqual(refused({ language: 4 }), [])
    assert.deepEqual(withTypes({ fax: [1] }), ['fax names engine 1, which is released: name 4'])
    assert.deepEqual(withTypes({ stop: [1, 2, 3] }), ['stop names engine 3, which is released: name 4'])
    assert.deepEqual(refused({ later: { pool: 4 } }), [])
    assert.deepEqual(refused({ later: { pool: 3 } }), ['pool names engine 3, which is released: name 4'])
    assert.deepEqual(refused({ language: 3 }), ['the language names engine 3, which is released: name 4'])
    assert.deepEqual(withTypes({ approval: [4] }), ['approval was released with the engines 3'])
    assert.deepEqual(withTypes({ stop: [1] }), ['stop was released with the engines 1, 2'])
    assert.deepEqual(refused({ types: { stop: [1, 2] } }), ['approval was released: stored programs name it'])
  })

  it('of this version is the greatest of all node types, their uses and the language', () => {
    assert.equal(ENGINE, greatest(current))
    for (const { type, engines } of Object.values(nodeTypes))
      for (const [n, engine] of engines.entries())
        assert.ok(Number.isInteger(engine) && engine > (n === 0 ? 0 : engines[0]!), type)
  })

  it('of a program is the greatest of its nodes, by their use', () => {
    const engineOf = (...nodes: Omit<NodeSpec, 'id'>[]) =>
      compile({
        name: 'Test',
        trigger: { type: 'manual' },
        inputs: {},
        nodes: nodes.map((node, n) => ({ id: `n${n}`, ...node })),
        edges: [],
        outputs: {},
        settings: {},
      }).engine
    const stop = (config: NodeSpec['config']) => ({ type: 'stop', config })
    assert.equal(engineOf(stop({})), 1)
    const request = { type: 'api_request', config: { url: 'https://x.test' } }
    assert.equal(engineOf({ ...request, pool: 'dmz' }), LATER_LANGUAGE.pool)
    assert.equal(engineOf({ ...request, pool: 'default' }), 1)
    assert.equal(engineOf(stop({ outputs: { a: 1 } })), 2)
    const signal = { type: 'wait_for_signal', config: { name: 'paid' } }
    assert.equal(engineOf(stop({ outputs: { a: 1 } }), signal, stop({})), 3)
  })
})
