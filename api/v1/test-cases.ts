import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import { type Issue, invalid } from '../../db/model/errors.ts'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { TEST_STATUSES, type TestCase } from '../../workflows/interpret/test-case.ts'
import { evaluateWhen } from '../../workflows/interpret/when.ts'
import type { Definition, Program } from '../../workflows/language/definition.ts'
import { EFFECT_CLASSES } from '../../workflows/language/definition.ts'
import type { Scope } from '../../workflows/language/expressions/liquid.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { didYouMean } from '../../workflows/language/problems.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import { TRIGGER_WHEN, WORKFLOW_TEST } from '../../workflows/shared/limits.ts'
import { NODE_STATUSES } from '../../workflows/shared/statuses.ts'
import { createTurns } from '../../workflows/shared/turns.ts'

/** The cases of a test of a workflow: their shape, and what they name in it. */

const values = z.record(z.string(), z.unknown())
const code = z.string().min(1).max(100)

const stub = z
  .strictObject({
    output: z.unknown().optional(),
    handle: z.string().max(100).optional(),
    error: z.strictObject({ code, message: z.string().max(2_000).default('') }).optional(),
  })
  .refine((given) => 'output' in given !== (given.error !== undefined), {
    path: ['output'],
    message: 'send either output or error',
  })
  .refine(({ error, handle }) => error === undefined || handle === undefined, {
    path: ['handle'],
    message: 'belongs to an output: a node that fails leaves by error',
  })

const expectedNode = z.strictObject({
  status: z.enum(NODE_STATUSES).optional(),
  handle: z.string().nullable().optional(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  error: values.nullable().optional(),
})

const expectedEffect = z.strictObject({
  node: z.string().optional().describe('The id of the node.'),
  path: z.string().optional(),
  node_type: z.string().optional(),
  effect: z.enum(EFFECT_CLASSES).optional(),
  input: z.unknown().optional(),
  calls: z.array(z.string()).optional(),
})

const expectation = z
  .strictObject({
    status: z.enum(TEST_STATUSES).optional(),
    outputs: values.optional(),
    error: values.optional(),
    nodes: z.record(z.string(), expectedNode).optional(),
    effects: z.array(expectedEffect).max(WORKFLOW_TEST.stubs).optional(),
  })
  .meta({
    id: 'WorkflowExpectation',
    description:
      'What must be so: of mappings the given members, of lists all items. `effects` has each write and each call of the run, in any order; it may have reads.',
  })

const oneCase = z
  .strictObject({
    name: z.string().min(1).max(200).optional(),
    inputs: values.default({}),
    trigger: values.default({}).describe('What started the run, as placeholders read it: `{record: {…}}`.'),
    stubs: z
      .record(z.string().max(500), stub)
      .refine((stubs) => Object.keys(stubs).length <= WORKFLOW_TEST.stubs, {
        message: `may have at most ${WORKFLOW_TEST.stubs}`,
      })
      .default({})
      .describe(
        'Results in place of those of nodes, by id: `{find: {output: {…}}}`, with `handle` if it is not the first one; or `{error: {code, message}}`. `each:0/find` is of one item of a loop.',
      ),
    expect: expectation.default({}),
  })
  .meta({ id: 'WorkflowTestCase' })

export const testCases = z.array(oneCase).min(1).max(WORKFLOW_TEST.cases)

type Given = z.output<typeof testCases>

export interface TestedWorkflow {
  definition: Definition
  program: Program
}

/** Reads cases that were written as YAML. Throws `validation_error`. */
export function casesFrom({ cases, errors }: { cases: unknown; errors: string[] }): Given {
  const loc = ['body', 'cases']
  if (errors.length > 0) throw invalid(errors.map((msg) => ({ loc, msg, type: 'yaml' })))
  const parsed = testCases.safeParse(cases)
  if (parsed.success) return parsed.data
  throw invalid(
    parsed.error.issues.map(({ path, message, code: type }) => ({
      loc: [...loc, ...path.map((key) => (typeof key === 'symbol' ? String(key) : key))],
      msg: message,
      type,
    })),
  )
}

/**
 * The cases as the worker runs them. Throws `validation_error` with all that they name and the workflow does not have.
 */
export async function planCases(
  cases: Given,
  { definition, program }: TestedWorkflow,
  facts: { org: Scope; env: Scope },
): Promise<TestCase[]> {
  const issues: Issue[] = []
  const planned: TestCase[] = []
  const turn = createTurns()
  for (const [index, one] of cases.entries()) {
    await turn()
    const { name = `case ${index + 1}`, stubs, expect } = one
    const at = ['body', 'cases', index]
    const { inputs, problems } = checkInputs(program.inputs, one.inputs)
    for (const problem of problems)
      issues.push({ loc: [...at, 'inputs', problem.name], msg: problem.message, type: problem.type })
    for (const [key, { handle }] of Object.entries(stubs))
      issues.push(...stubIssues(program, key, handle, [...at, 'stubs', key]))
    for (const key of Object.keys(expect.nodes ?? {}))
      issues.push(...nodeIssues(program, key, [...at, 'expect', 'nodes', key]))
    for (const [n, { node }] of (expect.effects ?? []).entries())
      if (node !== undefined)
        issues.push(...nodeIssues(program, node, [...at, 'expect', 'effects', n, 'node']))
    const trigger = triggerOf(definition, one.trigger)
    const starts = startedBy(definition, { trigger, ...facts })
    if (starts instanceof NodeError)
      issues.push({ loc: [...at, 'trigger'], msg: `when: ${starts.message}`, type: starts.code })
    else planned.push({ name, inputs, trigger, starts, stubs, expect })
  }
  if (issues.length > 0) throw invalid(issues)
  return planned
}

const idOf = (key: string) => key.slice(key.lastIndexOf('/') + 1)

function nodeIssues({ nodes }: Program, key: string, loc: Issue['loc']): Issue[] {
  if (Object.hasOwn(nodes, idOf(key))) return []
  const hint = didYouMean(idOf(key), Object.keys(nodes))
  return [{ loc, msg: `the workflow has no node ${idOf(key).slice(0, 100)}`, type: 'unknown_node', ...hint }]
}

function stubIssues(program: Program, key: string, handle: string | undefined, loc: Issue['loc']): Issue[] {
  const missing = nodeIssues(program, key, loc)
  if (missing.length > 0 || handle === undefined) return missing
  const { type, config } = program.nodes[idOf(key)]!
  const names = (findNodeType(type)?.handles(config) ?? []).map(({ name }) => name)
  if (names.includes(handle)) return []
  return [
    {
      loc: [...loc, 'handle'],
      msg: `the node has the handles ${names.join(', ')}`,
      type: 'unknown_handle',
      ...didYouMean(handle, names),
    },
  ]
}

/** The trigger of a run, with the members that the service sets where the case does not. */
function triggerOf({ trigger }: Definition, given: Record<string, unknown>): RunTrigger {
  if (trigger.type === 'manual') return { ...given, type: 'api' }
  if (trigger.type === 'webhook') return { action: 'created', ...given, type: 'webhook' }
  const now = new Date().toISOString()
  if (trigger.type === 'schedule')
    return { scheduled_at: now, timezone: trigger.timezone, ...given, type: 'schedule' }
  const event = { id: uuidv7(), name: trigger.events[0], created_at: now }
  return { event, changed: [], ...given, type: 'event' }
}

const startedBy = ({ trigger }: Definition, scope: Scope): boolean | NodeError =>
  trigger.type !== 'event' || trigger.when === undefined || evaluateWhen(trigger.when, scope, TRIGGER_WHEN)
