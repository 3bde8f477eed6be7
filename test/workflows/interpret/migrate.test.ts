import assert from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Happened } from '../../../workflows/bundle/protocol.ts'
import { type MigratedRun, planMigration } from '../../../workflows/interpret/migrate.ts'
import type { RunNode } from '../../../workflows/interpret/run-state.ts'
import { runSegment } from '../../../workflows/interpret/segment.ts'
import type { Edge, NodeSpec } from '../../../workflows/language/definition.ts'
import { LIMITS } from '../../../workflows/shared/run-limits.ts'
import { edge, set } from '../../support/nodes.ts'
import { ID, runFacts } from '../../support/run-facts.ts'

const program = (nodes: (string | NodeSpec)[], edges: Edge[]) =>
  compile({
    name: 'Test',
    trigger: { type: 'manual' },
    inputs: {},
    nodes: nodes.map((node) => (typeof node === 'string' ? set(node) : node)),
    edges,
    outputs: {},
    settings: {},
  })

type Top = MigratedRun['top'][number]
const done = (node_id: string, handle: string | null = 'success'): Top => ({
  node_id,
  status: 'completed',
  handle,
  settled_segment: 0,
})
const open = (node_id: string, status: Top['status'] = 'waiting'): Top => ({
  node_id,
  status,
  handle: null,
  settled_segment: null,
})
/** A run with these nodes outside of any loop, all of one type. */
const runAt = (...top: Top[]): MigratedRun => ({
  top,
  loops: [],
  reached: top.map(({ node_id, status }) => ({
    node_id,
    node_type: 'set_fields',
    loops: [],
    open: status === 'waiting' || status === 'running',
    skipped: status === 'skipped',
  })),
})
const codes = ({ obstacles }: ReturnType<typeof planMigration>) =>
  obstacles.map(({ code, node_id }) => [code, node_id])

describe('the plan of a migration', () => {
  const chain = program(['a', 'b', 'c'], [edge('a', 'b'), edge('b', 'c')])

  it('skips no node of a run that has not begun', () => {
    const longer = program(['new', 'a', 'b', 'c'], [edge('new', 'a'), edge('a', 'b'), edge('b', 'c')])
    assert.deepEqual(planMigration(chain, longer, runAt()), { obstacles: [], passed: [] })
  })

  it('skips an added start and all that only leads to what has begun', () => {
    const longer = program(
      ['new', 'other', 'a', 'b', 'c'],
      [edge('new', 'other'), edge('other', 'a'), edge('a', 'b'), edge('b', 'c')],
    )
    assert.deepEqual(planMigration(chain, longer, runAt(done('a'), open('b'))).passed, ['new'])
  })

  it('runs what is added where the flow had stopped: before, or instead of, a node that has not begun', () => {
    const before = program(['a', 'new', 'b', 'c'], [edge('a', 'new'), edge('new', 'b'), edge('b', 'c')])
    const instead = program(['a', 'new'], [edge('a', 'new')])
    for (const to of [before, instead])
      assert.deepEqual(planMigration(chain, to, runAt(done('a'))), { obstacles: [], passed: [] })
  })

  it('skips what is added beside a join that waits with the same edge, and runs what is added before it', () => {
    const joined = [edge('a', 'b'), edge('a', 'join'), edge('b', 'join')]
    const from = program(['a', 'b', 'join'], joined)
    const run = runAt(done('a'), open('b'))
    const beside = program(['a', 'b', 'join', 'new'], [...joined, edge('a', 'new')])
    assert.deepEqual(planMigration(from, beside, run).passed, ['new'])
    const before = program(
      ['a', 'b', 'new', 'join'],
      [edge('a', 'b'), edge('a', 'new'), edge('new', 'join'), edge('b', 'join')],
    )
    assert.deepEqual(planMigration(from, before, run).passed, [])
  })

  it('refuses a node that reads the output of a skipped one, unless it has a default or has begun', () => {
    const reading = (text: string, reader: string) =>
      program(
        ['a', 'new', ...['b', 'c'].map((id) => set(id, id === reader ? text : id))],
        [edge('a', 'new'), edge('new', 'b'), edge('b', 'c')],
      )
    const plan = (text: string, reader = 'c', status: Top['status'] = 'waiting') =>
      codes(planMigration(chain, reading(text, reader), runAt(done('a'), open('b', status))))
    assert.deepEqual(plan('{{ nodes.new.output.value }}'), [['reads_skipped_node', 'c']])
    assert.deepEqual(plan('{{ nodes.new.output.value | default: 1 }}'), [])
    assert.deepEqual(plan('{{ nodes.new.status }}'), [])
    assert.deepEqual(plan('{{ nodes.new.output.value }}', 'b'), [])
    assert.deepEqual(plan('{{ nodes.new.output.value }}', 'b', 'running'), [['reads_skipped_node', 'b']])
  })

  it('refuses a handle that is gone, if the nodes after it have not begun', () => {
    const choice = (...values: string[]): NodeSpec => ({
      id: 'a',
      type: 'switch',
      config: {
        value: '{{ inputs.tier }}',
        cases: Object.fromEntries(values.map((value) => [value, value])),
      },
    })
    const from = program([choice('gold'), 'b'], [edge('a', 'b', 'gold')])
    const to = program([choice('premium'), 'b'], [edge('a', 'b', 'premium')])
    const at = (...top: Top[]): MigratedRun => ({ ...runAt(...top), reached: [] })
    assert.deepEqual(codes(planMigration(from, to, at(done('a', 'gold')))), [['handle_missing', 'a']])
    assert.deepEqual(codes(planMigration(from, to, at(done('a', 'gold'), open('b')))), [])
  })

  it('refuses an open node whose effect is changed; a skipped node may be gone', () => {
    const fields = (operation: string): NodeSpec => ({
      id: 'b',
      type: 'crm_manager',
      config: { operation, entity: 'contacts', id: 'x' },
    })
    const [read, write] = [fields('get'), fields('delete')].map((node) =>
      program(['a', node], [edge('a', 'b')]),
    )
    const run = runAt(done('a'), open('b', 'running'))
    const reached = run.reached.map((node) =>
      node.node_id === 'b' ? { ...node, node_type: 'crm_manager' } : node,
    )
    assert.deepEqual(codes(planMigration(read!, write!, { ...run, reached })), [['effect_changed', 'b']])
    const pooled = structuredClone(read!)
    pooled.nodes.b!.pool = 'dmz'
    assert.deepEqual(codes(planMigration(read!, pooled, { ...run, reached })), [['pool_changed', 'b']])
    const gone = runAt(done('a'), { ...done('b', null), status: 'skipped' })
    assert.deepEqual(codes(planMigration(chain, program(['a', 'c'], [edge('a', 'c')]), gone)), [])
  })
})

describe('a segment of a migrated run', () => {
  const MINUTE = 60_000
  const start = Date.parse('2026-01-01T00:00:00.000Z')
  const limited = (timeout?: string) => {
    const { settings, ...rest } = program(['a'], [])
    return { ...rest, settings: timeout === undefined ? settings : { timeout_ms: Number(timeout) * MINUTE } }
  }
  const waiting: RunNode = {
    path: '',
    node_id: 'a',
    node_type: 'set_fields',
    title: 'a',
    status: 'waiting',
    attempt: 1,
    input: null,
    output: null,
    handle: null,
    error: null,
    wait_until: '2026-01-02T00:00:00.000Z',
    segment: 0,
    settled_segment: null,
    position: 0,
    started_at: '2026-01-01T00:00:00.000Z',
    ended_at: null,
  }
  /** The answer ten minutes after the start of the run. */
  async function answerTo(
    happened: Happened[],
    { timeout, hold = false, migrated = true }: { timeout?: string; hold?: boolean; migrated?: boolean },
  ) {
    const run = {
      ...runFacts.run,
      workflow_version: 2,
      started_at: '2026-01-01T00:00:00.000Z',
      migrations: migrated ? [{}] : null,
    }
    const { answer } = await runSegment(
      limited(timeout),
      { ...runFacts, run, nodes: [{ ...waiting }] },
      { organization_id: ID, run_id: ID, segment: 1, happened },
      {
        hold,
        reissue: happened.some(({ type }) => type === 'refresh'),
        clock: () => start + 10 * MINUTE,
        limits: LIMITS,
        loops: {
          items: async () => [],
          results: async () => [],
          turn: async () => ({ index: 0, item: null }),
        },
        runNode: () => assert.fail('it has no node to run'),
      },
    )
    const { version, replaces_timeout, timeout_ms, commands } = answer
    return { version, replaces_timeout, timeout_ms, ends: commands.some(({ type }) => type === 'end') }
  }
  const silent = { version: undefined, replaces_timeout: undefined, timeout_ms: undefined, ends: false }
  const told = { ...silent, version: 2, replaces_timeout: true }

  it('tells the workflow the version and the time that is left, once it issues its commands again', async () => {
    const refresh: Happened[] = [{ type: 'refresh' }]
    assert.deepEqual(await answerTo(refresh, { timeout: '30' }), { ...told, timeout_ms: 20 * MINUTE })
    assert.deepEqual(await answerTo(refresh, {}), told)
    assert.equal((await answerTo(refresh, { timeout: '10' })).ends, true)
    assert.deepEqual(await answerTo([], { timeout: '30' }), silent)
    const own = await answerTo(refresh, { timeout: '30', migrated: false })
    assert.deepEqual(own, { ...silent, timeout_ms: 20 * MINUTE })
  })

  it('leaves the time limit as it is while a pause is requested', async () => {
    const { version, replaces_timeout } = await answerTo([{ type: 'refresh' }], { timeout: '30', hold: true })
    assert.deepEqual([version, replaces_timeout], [undefined, undefined])
  })

  it('goes on after the end of a time limit that it no longer has', async () => {
    const timeout: Happened[] = [{ type: 'timeout' }]
    assert.deepEqual(await answerTo(timeout, { timeout: '30' }), { ...told, timeout_ms: 20 * MINUTE })
    assert.deepEqual(await answerTo(timeout, {}), told)
    assert.equal((await answerTo(timeout, { timeout: '10' })).ends, true)
    assert.equal((await answerTo(timeout, { timeout: '30', migrated: false })).ends, true)
  })
})
