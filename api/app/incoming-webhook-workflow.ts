import { AppError, type Issue, invalid } from '../../db/model/errors.ts'
import type { IncomingWebhook } from '../../db/model/incoming/types.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { findById, type Runnable } from '../../db/workflows/workflows.ts'
import { didYouMean } from '../../workflows/language/problems.ts'
import { stepsOf } from '../../workflows/shared/paths.ts'

type Selection = Pick<IncomingWebhook, 'workflow_id' | 'workflow_inputs'>

/**
 * Throws validation_error for an unknown workflow, and for inputs with which the version that a trigger runs cannot
 * start. If the workflow changes later, the webhook stays valid and its log gets a warning.
 */
export async function assertWorkflow(tx: Tenant, { workflow_id: id, workflow_inputs }: Selection) {
  const issues = id
    ? inputIssues(await selected(tx, id), workflow_inputs)
    : Object.keys(workflow_inputs).length > 0
      ? [
          {
            loc: ['body', 'workflow_inputs'],
            msg: 'needs a workflow_id',
            type: 'invalid_value',
            hint: 'set workflow_id, or omit workflow_inputs',
          },
        ]
      : []
  if (issues.length > 0) throw invalid(issues)
}

/** The same for each listener. */
export async function assertListeners(
  tx: Tenant,
  { listeners }: Pick<IncomingWebhook, 'listeners'>,
): Promise<void> {
  const issues: Issue[] = []
  for (const [place, { workflow_id, workflow_inputs }] of listeners.entries()) {
    const at = ['body', 'listeners', place]
    const found = await selected(tx, workflow_id, [...at, 'workflow_id'])
    const of = inputIssues(found, workflow_inputs)
    issues.push(...of.map((issue) => ({ ...issue, loc: [...at, ...issue.loc.slice(1)] })))
  }
  if (issues.length > 0) throw invalid(issues)
}

/** Throws validation_error for the path of an input that the webhook never has. */
export function assertInputPaths({
  kind,
  workflow_inputs,
  listeners,
  trigger_headers,
  trigger_query,
}: Pick<
  IncomingWebhook,
  'kind' | 'workflow_inputs' | 'listeners' | 'trigger_headers' | 'trigger_query'
>): void {
  const allowed: Record<string, { field: string; names: string[] }> = {
    headers: { field: 'trigger_headers', names: trigger_headers },
    query: { field: 'trigger_query', names: trigger_query },
  }
  const problemOf = (path: string) => {
    const [root = '', name = ''] = stepsOf(path)
    if (root === 'record' && kind === 'none')
      return { msg: 'target_entity none writes no record', hint: 'read the payload' }
    const list = allowed[root]
    if (!list || list.names.includes(name)) return undefined
    return { msg: `${list.field} does not have ${name}`, hint: `add ${name} to ${list.field}` }
  }
  const issuesOf = (inputs: Record<string, string>, loc: Issue['loc']): Issue[] =>
    Object.entries(inputs).flatMap(([input, path]) => {
      const problem = problemOf(path)
      return problem ? [{ ...problem, loc: [...loc, input], type: 'invalid_value', input: path }] : []
    })
  const issues = [
    ...issuesOf(workflow_inputs, ['body', 'workflow_inputs']),
    ...listeners.flatMap((one, place) =>
      issuesOf(one.workflow_inputs, ['body', 'listeners', place, 'workflow_inputs']),
    ),
  ]
  if (issues.length > 0) throw invalid(issues)
}

async function selected(
  tx: Tenant,
  id: string,
  loc: Issue['loc'] = ['body', 'workflow_id'],
): Promise<Runnable> {
  return findById(tx, id).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.type !== 'not_found') throw error
    throw invalid([{ loc, msg: 'there is no workflow with this id', type: 'not_found', input: id }])
  })
}

function inputIssues({ name, program }: Runnable, mapped: Record<string, string>): Issue[] {
  const names = Object.keys(program.inputs)
  const known = names.length > 0 ? `its inputs are ${names.join(', ')}` : 'it has no inputs'
  const unknown = Object.keys(mapped)
    .filter((input) => !names.includes(input))
    .map((input) => ({
      loc: ['body', 'workflow_inputs', input],
      msg: `the workflow "${name}" has no input ${input}`,
      type: 'unknown_input',
      hint: known,
      ...didYouMean(input, names),
    }))
  const missing = Object.entries(program.inputs)
    .filter(([input, spec]) => spec.required && spec.default === undefined && !Object.hasOwn(mapped, input))
    .map(([input]) => ({
      loc: ['body', 'workflow_inputs', input],
      msg: `the workflow "${name}" requires this input`,
      type: 'missing',
      hint: 'set a path, such as payload.email or record.id',
    }))
  return [...unknown, ...missing]
}
