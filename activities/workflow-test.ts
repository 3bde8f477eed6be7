import { openSecrets } from '../db/access/secrets.ts'
import { NeedsComputation } from '../db/process/compute/computed.ts'
import { type EffectName, effectNames, ports } from '../workflows/effects/index.ts'
import { notMade } from '../workflows/effects/narrate.ts'
import { mismatchesOf } from '../workflows/interpret/expectations.ts'
import { PlannedRun } from '../workflows/interpret/planned-run.ts'
import type { RunFacts } from '../workflows/interpret/run-state.ts'
import type { CaseResult, PlannedEffect, Stub, TestCase } from '../workflows/interpret/test-case.ts'
import { runTrial, type Trialled } from '../workflows/interpret/trial.ts'
import type { Program, ProgramNode } from '../workflows/language/definition.ts'
import type { Scope } from '../workflows/language/expressions/liquid.ts'
import { findNodeType } from '../workflows/nodes/index.ts'
import { WORKFLOW_TEST } from '../workflows/shared/limits.ts'
import { LIMITS } from '../workflows/shared/run-limits.ts'
import type { EffectFactories } from './effects/define.ts'
import { type Performed, performNode } from './perform-node.ts'
import { call, light, type TrialOptions } from './trial.ts'

/** Runs the cases of a workflow one after the other, without any effect. The output has their results. */
export async function performCases(
  program: Program,
  cases: TestCase[],
  stubs: Record<string, Stub>,
  options: TrialOptions,
): Promise<Performed> {
  const results: CaseResult[] = []
  let room: number = WORKFLOW_TEST.resultCharacters
  for (const one of cases) {
    const result = await performCase(program, { ...one, stubs: { ...stubs, ...one.stubs } }, options)
    const characters = JSON.stringify(result).length
    results.push(characters <= room ? result : shortened(result))
    room -= Math.min(characters, room)
  }
  const output = { cases: results }
  return {
    outcome: { status: 'completed', input: null, output, handle: 'success' },
    raised: [],
    created: [],
    received: [],
  }
}

async function performCase(program: Program, one: TestCase, options: TrialOptions): Promise<CaseResult> {
  const planned = new PlannedRun(one.stubs)
  const log: string[] = []
  const trialled: Trialled | undefined = one.starts
    ? await trial(program, one, planned, log, options)
    : undefined
  const rows = trialled?.rows ?? new Map()
  const end = trialled && typeof trialled.outcome !== 'string' ? trialled.outcome : undefined
  const status = end
    ? end.status === 'completed'
      ? 'completed'
      : 'failed'
    : ((trialled?.outcome as 'waiting' | undefined) ?? 'not_started')
  const happened = {
    status,
    outputs: end?.outputs ?? null,
    error: end?.error ?? null,
    nodes: planned.nodesOf(rows),
    effects: planned.effects,
  } satisfies Partial<CaseResult>
  const mismatches = mismatchesOf(one.expect, happened)
  const missing_stubs = planned.missing(program, rows, end?.status === 'completed')
  const passed = mismatches.length === 0 && missing_stubs.length === 0
  return { name: one.name, passed, ...happened, missing_stubs, mismatches, log, shortened: false }
}

function trial(
  program: Program,
  one: TestCase,
  planned: PlannedRun,
  log: string[],
  options: TrialOptions,
): Promise<Trialled> {
  const { deps, transact, signal } = options
  const state: RunFacts = {
    ...options.state,
    run: { ...options.state.run, trigger: one.trigger, inputs: one.inputs },
  }
  const report = (line: string) => {
    if (log.length < WORKFLOW_TEST.logLines) log.push(line.slice(0, 500))
  }
  /** Performs a node without its effects. */
  async function perform(
    node: ProgramNode,
    path: string,
    work: (options: TrialOptions) => Promise<Performed['outcome']>,
  ) {
    const calls: string[] = []
    const effects = withoutEffects(deps.effects, planned.stubOf(node, path) !== undefined)
    // `light` and `call` put the key of the node before each line.
    const tell = (line: string) => {
      const said = line.slice(line.indexOf(': ') + 2)
      if (!said.startsWith('failed: ')) calls.push(said)
    }
    const outcome = await work({ ...options, state, inputs: {}, report: tell, deps: { ...deps, effects } })
    return planned.outcomeOf(node, path, outcome, calls.slice(0, WORKFLOW_TEST.calls))
  }
  return runTrial(
    program,
    state,
    {},
    {
      signal,
      report,
      stopsAtWaits: true,
      mostNodes: WORKFLOW_TEST.nodes,
      limits: { ...LIMITS, totalBytes: WORKFLOW_TEST.bytes },
      childEnd: async () => undefined,
      segment: async (work) => {
        const before = planned.effects.length
        return deps.lightWork.before(state.organization.id, (compute) =>
          transact(async (tx) => {
            // The transaction may be repeated.
            planned.effects.splice(before)
            let ran = 0
            return work((node, scope, path) =>
              perform(node, path, async (inner) => {
                const performed = await light(tx, node, scope, path, { ...inner, compute })
                ran += 1
                return performed.outcome
              }).catch((error: unknown) => {
                if (error instanceof NeedsComputation && ran > 0) return 'later' as const
                throw error
              }),
            )
          }),
        )
      },
      call: (node, scope, path) =>
        perform(node, path, (inner) =>
          isReal(node, planned.stubOf(node, path) !== undefined)
            ? call(node, scope, path, inner)
            : external(node, scope, path, inner),
        ),
    },
  )
}

/** An attempt of an external node that makes no calls: it needs no slot, and no worker of its pool. */
async function external(
  node: ProgramNode,
  scope: Scope,
  path: string,
  { deps, state, signal, ms, hold, transact, report }: TrialOptions,
) {
  const secrets = await transact((tx) => openSecrets(tx, deps.secretsKey))
  const { outcome } = await performNode(deps, {
    node,
    path,
    state,
    scope,
    secrets,
    signal,
    hold,
    attempt: 1,
    now: new Date(),
    tx: undefined,
    timeoutMs: ms,
    reach: () => {},
    report: (line) => report(`${node.id}: ${line}`),
  })
  return outcome
}

/** The effects that leave nothing behind and send nothing: the sandbox of `code`, and the table of rates. */
const REAL: readonly EffectName[] = ['sandbox', 'rates']

const isReal = ({ type }: ProgramNode, isStubbed: boolean): boolean =>
  !isStubbed && (findNodeType(type)?.effects ?? []).every((name) => REAL.includes(name))

const withoutEffects = (effects: EffectFactories, isStubbed: boolean): EffectFactories =>
  Object.fromEntries(
    effectNames.map((name) => [
      name,
      REAL.includes(name) && !isStubbed ? effects[name] : () => notMade(ports[name] as never),
    ]),
  ) as EffectFactories

/** A result without the values of its nodes and effects. */
const shortened = (result: CaseResult): CaseResult => ({
  ...result,
  nodes: result.nodes
    .slice(0, WORKFLOW_TEST.shortNodes)
    .map((node) => ({ ...node, input: null, output: null })),
  effects: result.effects
    .slice(0, WORKFLOW_TEST.shortNodes)
    .map((effect): PlannedEffect => ({ ...effect, input: null })),
  outputs: null,
  mismatches: result.mismatches.map(({ path, message }) => ({ path, message })),
  shortened: true,
})
