import assert from 'node:assert/strict'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Command } from '../../../workflows/bundle/protocol.ts'
import { commandOf, reissue } from '../../../workflows/interpret/open-nodes.ts'
import type { RunNode } from '../../../workflows/interpret/run-state.ts'

const ALL = { bytes: Infinity }
const NOW = Date.parse('2026-01-01T01:00:00.000Z')
const program = compile({
  name: 'Test',
  trigger: { type: 'manual' },
  inputs: {},
  edges: [],
  outputs: {},
  nodes: [
    { id: 'pause', type: 'delay', config: { for: '2h' } },
    { id: 'call', type: 'api_request', title: 'Call it', config: { url: 'https://x.test/' }, timeout: '7s' },
  ],
  settings: { timeout: '3h' },
})
const row = (node_id: string, change: Partial<RunNode> = {}): RunNode => ({
  path: '',
  node_id,
  node_type: 'any',
  title: node_id,
  status: 'running',
  attempt: 1,
  input: null,
  output: null,
  handle: null,
  error: null,
  wait_until: null,
  segment: 0,
  settled_segment: null,
  position: 0,
  started_at: '2026-01-01T00:00:00.000Z',
  ended_at: null,
  ...change,
})
const waiting = (until: string) => row('pause', { status: 'waiting', wait_until: until })
const started = { started_at: '2026-01-01T00:00:00.000Z' }

describe('the commands of open nodes', () => {
  it('hold the remaining time of a timer, at least a millisecond', () => {
    const ms = (until: string) =>
      (commandOf(program.nodes.pause!, waiting(until), NOW) as Command & { type: 'timer' }).ms
    assert.equal(ms('2026-01-01T02:00:00.000Z'), 3_600_000)
    assert.equal(ms('2026-01-01T00:30:00.000Z'), 1)
  })

  it('are there for every open node and for no other', () => {
    const { commands, happened, timeout_ms } = reissue(
      program,
      started,
      [waiting('2026-01-01T02:00:00.000Z'), row('call'), row('gone')],
      NOW,
      ALL,
    )
    const { retry } = program.nodes.call!
    assert.deepEqual(commands, [
      {
        type: 'external',
        node: 'call',
        node_type: 'api_request',
        title: 'Call it',
        timeout_ms: 7_000,
        retry,
      },
      { type: 'timer', node: 'pause', title: 'pause', ms: 3_600_000 },
    ])
    assert.deepEqual([happened, timeout_ms], [[], 7_200_000])
    const settled = [row('call', { status: 'completed', settled_segment: 1 })]
    assert.deepEqual(reissue(program, started, settled, NOW, ALL).commands, [])
  })

  it('report an external node whose end the workflow never heard of', () => {
    const ended = row('call', { status: 'failed', ended_at: '2026-01-01T00:10:00.000Z' })
    const { commands, happened } = reissue(program, started, [ended], NOW, ALL)
    assert.deepEqual([commands, happened], [[], [{ type: 'settled', node: 'call' }]])
  })

  it('report a timeout of the run that has passed', () => {
    const { happened } = reissue(program, { started_at: '2025-12-31T00:00:00.000Z' }, [], NOW, ALL)
    assert.deepEqual(happened, [{ type: 'timeout' }])
  })
})
