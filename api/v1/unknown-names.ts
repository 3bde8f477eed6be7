import { getEnvironment } from '../../db/access/organization.ts'
import { getSubscription, limitOf } from '../../db/access/plans.ts'
import { getPools } from '../../db/access/pools.ts'
import { AppError } from '../../db/model/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { emittedEvents } from '../../db/workflows/emitted-events.ts'
import { findWorkflows } from '../../db/workflows/list.ts'
import { nearestWorkflows } from '../../db/workflows/nearest.ts'
import type {
  CallTimeout,
  EnvReference,
  EventReference,
  Finding,
  InputReference,
  InputSpec,
  OutsideReferences,
  PoolReference,
  ServiceReference,
  ValidationResult,
  WorkflowReference,
} from '../../workflows/language/definition.ts'
import { hasPlaceholder } from '../../workflows/language/expressions/template.ts'
import { fits, isAllowed } from '../../workflows/language/inputs.ts'
import { DEFAULT_POOL } from '../../workflows/language/pool.ts'
import { didYouMean, meantBy, REMOVE } from '../../workflows/language/problems.ts'
import { EMIT_TYPES } from '../../workflows/nodes/index.ts'
import { eventsBeside } from '../../workflows/shared/events.ts'
import { nearest } from '../../workflows/shared/nearest.ts'

/** A validation with the findings about what the organization does not have: names in the definition, its plan. */
export async function withUnknownNames(
  tx: Tenant,
  result: ValidationResult,
  references: OutsideReferences,
  config: ServiceVariables,
): Promise<ValidationResult> {
  const { errors, warnings } = await lookUp(tx, references, config)
  return {
    valid: result.valid && errors.length === 0,
    errors: [...result.errors, ...errors],
    warnings: [...result.warnings, ...warnings],
  }
}

/**
 * Warnings about names in a definition that the organization does not have yet. Throws workflow_invalid for a worker
 * pool that it may not use, and a timeout that its plan does not allow.
 */
export async function unknownNames(
  tx: Tenant,
  references: OutsideReferences,
  config: ServiceVariables,
): Promise<Finding[]> {
  const { errors, warnings } = await lookUp(tx, references, config)
  if (errors.length > 0)
    throw new AppError('workflow_invalid', `the workflow has an error: ${errors[0]!.message}`, {
      validation: { valid: false, errors, warnings },
    })
  return warnings
}

/** Whether a definition names anything that is looked up in the database. */
export const namesOthers = ({
  workflows,
  env,
  pools,
  timeouts,
  services,
  events,
}: OutsideReferences): boolean =>
  [workflows, env, pools, timeouts, services, events].some((names) => names.length > 0)

/** What the organization does not have: errors, which refuse the definition, and warnings. */
async function lookUp(
  tx: Tenant,
  references: OutsideReferences,
  config: ServiceVariables,
): Promise<{ errors: Finding[]; warnings: Finding[] }> {
  const workflows = await namedWorkflows(tx, references.workflows)
  const events = await unraisedEvents(tx, references.events)
  return {
    errors: [
      ...(await unknownPools(tx, references.pools)),
      ...(await longTimeouts(tx, references.timeouts)),
      ...missingInputs(references.workflows, workflows),
      ...events.filter(({ code }) => code === 'unknown_event'),
    ],
    warnings: [
      ...(await missingNames(tx, references, config, workflows)),
      ...events.filter(({ code }) => code === 'unraised_event'),
    ],
  }
}

/** Findings about workflows that are there. */
const IS_THERE = ['draft_workflow', 'workflow_inputs']

/** Everything that a saved definition names and that the organization does not have, as findings. */
export async function missingReferences(
  tx: Tenant,
  references: OutsideReferences,
  config: ServiceVariables,
): Promise<Finding[]> {
  const workflows = await namedWorkflows(tx, references.workflows)
  const names = await missingNames(tx, references, config, workflows)
  const missing = names.filter(({ code }) => !IS_THERE.includes(code))
  return [...(await unknownPools(tx, references.pools)), ...missing]
}

/** The environment variables of the service by name; those that are not set are absent or undefined. */
type ServiceVariables = Readonly<Record<string, unknown>>

async function missingNames(
  tx: Tenant,
  references: OutsideReferences,
  config: ServiceVariables,
  workflows: NamedWorkflowsByName,
): Promise<Finding[]> {
  return [
    ...missingServices(references.services, config),
    ...(await unknownWorkflows(tx, references.workflows, workflows)),
    ...(await unknownEnv(tx, references.env)),
  ]
}

type NamedWorkflowsByName = Awaited<ReturnType<typeof findWorkflows>>

async function namedWorkflows(tx: Tenant, references: WorkflowReference[]): Promise<NamedWorkflowsByName> {
  if (references.length === 0) return new Map()
  return findWorkflows(
    tx,
    references.map(({ workflow }) => workflow),
  )
}

/** The nodes that fail because the service lacks a variable. */
const missingServices = (references: ServiceReference[], config: ServiceVariables): Finding[] =>
  references
    .filter(({ variable }) => config[variable] === undefined)
    .map(({ variable, ...place }) => ({
      code: 'service_not_configured',
      message: `the service has no ${variable}: the node fails until it is set`,
      hint: `ask the operator to set the environment variable ${variable} of the service`,
      ...place,
    }))

/** Workflows that do not exist, ambiguous workflow names, drafts, and inputs that a workflow refuses. */
async function unknownWorkflows(
  tx: Tenant,
  references: WorkflowReference[],
  found: NamedWorkflowsByName,
): Promise<Finding[]> {
  if (references.length === 0) return []
  const absent = references.flatMap(({ workflow }) => (found.get(workflow)?.count ? [] : workflow))
  const near = await nearestWorkflows(tx, absent)
  return references.flatMap(({ workflow, inputs, ...place }): Finding[] => {
    const { count = 0, draft = false, inputs: specs = null } = found.get(workflow) ?? {}
    const shown = JSON.stringify(workflow)
    if (count === 1)
      return [
        ...(draft ? [{ ...draftWorkflow(shown), ...place }] : []),
        ...(specs && inputs ? wrongInputs(workflow, specs, inputs) : []),
      ]
    return [
      {
        code: 'unknown_workflow',
        ...(count === 0
          ? {
              message: `there is no workflow ${shown} yet`,
              hint: near.has(workflow)
                ? `did you mean ${near.get(workflow)}?`
                : 'create it, or write the exact name or the id of another workflow',
            }
          : { message: `${count} workflows are named ${shown}`, hint: 'write the id of one of them' }),
        ...place,
      },
    ]
  })
}

const draftWorkflow = (shown: string) => ({
  code: 'draft_workflow' as const,
  message: `the workflow ${shown} is a draft: it runs, but may be unfinished`,
  hint: 'activate it once it is finished',
})

/** The inputs that the named workflows require and do not get: each of the runs would be refused. */
function missingInputs(references: WorkflowReference[], found: NamedWorkflowsByName): Finding[] {
  const calls = references.filter(({ inputs }) => inputs !== undefined)
  return calls.flatMap(({ workflow, inputs = [], ...place }) => {
    const { count = 0, inputs: specs = null } = found.get(workflow) ?? {}
    if (count !== 1 || !specs) return []
    const given = inputs.map(({ name }) => name)
    const missing = Object.entries(specs).filter(
      ([name, { required, default: value }]) => required && value === undefined && !given.includes(name),
    )
    return missing.map(([name, { type }]) => {
      const written = given.find(
        (one) => !Object.hasOwn(specs, one) && meantBy(one, Object.keys(specs)) === name,
      )
      return {
        code: 'missing_value' as const,
        message: `the workflow ${JSON.stringify(workflow)} requires the input ${name}`,
        hint:
          written === undefined ? `add \`${name}: …\` (${type}) to inputs` : `rename ${written} to ${name}`,
        ...place,
      }
    })
  })
}

/** The inputs that a run of the named workflow would refuse, apart from missing ones. */
function wrongInputs(workflow: string, specs: Record<string, InputSpec>, given: InputReference[]): Finding[] {
  const code = 'workflow_inputs' as const
  const name = JSON.stringify(workflow)
  const unknown = given.filter((input) => !Object.hasOwn(specs, input.name))
  const mistyped = given.filter(
    ({ name: input, value }) =>
      value !== undefined &&
      value !== null &&
      Object.hasOwn(specs, input) &&
      !fits(specs[input]!.type, value),
  )
  const refused = given.filter(
    ({ name: input, value }) =>
      typeof value === 'string' && Object.hasOwn(specs, input) && !isAllowed(specs[input]!, value),
  )
  const names = Object.keys(specs)
  return [
    ...unknown.map(({ name: input, value: _, ...at }) => ({
      code,
      message: `the workflow ${name} has no input ${input.slice(0, 100)}`,
      hint: didYouMean(input, names).hint ?? (names.length > 0 ? `one of ${names.join(', ')}` : REMOVE),
      ...at,
    })),
    ...mistyped.map(({ name: input, value: _, ...at }) => ({
      code,
      message: `the input ${input} of the workflow ${name} must be of type ${specs[input]!.type}`,
      ...at,
    })),
    ...refused.map(({ name: input, value, ...at }) => ({
      code,
      message: `the input ${input} of the workflow ${name} is never ${JSON.stringify(String(value).slice(0, 100))}`,
      hint: didYouMean(String(value), specs[input]!.enum!).hint ?? `one of ${specs[input]!.enum!.join(', ')}`,
      ...at,
    })),
  ]
}

async function unknownEnv(tx: Tenant, references: EnvReference[]): Promise<Finding[]> {
  if (references.length === 0) return []
  const { secrets, env } = await getEnvironment(tx)
  const names = { secrets, env: Object.keys(env) }
  return references.flatMap(({ root, name, ...place }): Finding[] => {
    if (names[root].includes(name)) return []
    const shown = name.slice(0, 100)
    const { hint } = didYouMean(name, names[root])
    const unknown =
      root === 'secrets'
        ? {
            code: 'unknown_secret' as const,
            message: `there is no secret ${shown} yet: the node fails until it is set`,
            hint:
              hint ?? `an owner or admin sets it in the settings: PUT /app/secrets/${shown}, in a session`,
          }
        : {
            code: 'unknown_env' as const,
            message: `there is no environment variable env.${shown} yet: nodes and triggers that read it fail until it is set`,
            hint:
              hint ??
              `an owner or admin sets it in the settings: PATCH /app/organization {"env": {"${shown}": …}}, in a session`,
          }
    return [{ ...unknown, ...place }]
  })
}

async function longTimeouts(tx: Tenant, timeouts: CallTimeout[]): Promise<Finding[]> {
  if (timeouts.length === 0) return []
  const seconds = limitOf(await getSubscription(tx), 'max_call_seconds')
  return timeouts
    .filter(({ timeout_ms }) => timeout_ms > seconds * 1_000)
    .map(({ timeout_ms: _, ...place }) => ({
      code: 'timeout_too_long',
      message: `the plan allows a timeout of at most ${seconds} s`,
      hint: `write ${seconds}s, or less`,
      ...place,
    }))
}

/** Events that neither the service nor a workflow of the organization raises. */
async function unraisedEvents(tx: Tenant, references: EventReference[]): Promise<Finding[]> {
  if (references.length === 0) return []
  const emitted = await emittedEvents(tx)
  // A name with a placeholder can be any.
  if (!emitted || emitted.some(hasPlaceholder)) return []
  return references
    .filter(({ event }) => !emitted.includes(event))
    .map(({ event, ...place }): Finding => {
      const [entity, action] = event.split('.') as [string, string]
      const beside = eventsBeside(event)
      if (beside.length > 0)
        return {
          code: 'unknown_event',
          message: `nothing raises ${event}: the service has no such event of ${entity}, and no workflow raises it by ${EMIT_TYPES}`,
          hint: nearestAction(entity, action, beside) ?? `one of ${beside.join(', ')}`,
          ...place,
        }
      return {
        code: 'unraised_event',
        message: `no workflow of the organization raises ${event} yet, nor does the service`,
        hint:
          didYouMean(event, emitted).hint ??
          `raise it by a node ${EMIT_TYPES} of a workflow, or write an event that there is: GET /v1/events`,
        ...place,
      }
    })
}

/** Only the actions are compared: names of one entity are always near each other. */
function nearestAction(entity: string, action: string, events: string[]): string | undefined {
  const actions = events.map((event) => event.slice(entity.length + 1))
  const meant = nearest(action, actions)
  return meant === undefined ? undefined : `did you mean ${entity}.${meant}?`
}

async function unknownPools(tx: Tenant, references: PoolReference[]): Promise<Finding[]> {
  if (references.length === 0) return []
  const pools = await getPools(tx)
  return references
    .filter(({ pool }) => !pools.includes(pool))
    .map(({ pool, ...place }) => ({ ...unknownPool(pool, pools), ...place }))
}

/** A pool that does not exist, and one of other organizations: both look the same. */
export function unknownPool(pool: string, pools: string[]) {
  const others = pools.length > 0 ? `one of ${pools.join(', ')}, or ${DEFAULT_POOL}` : undefined
  return {
    code: 'unknown_pool' as const,
    message: `the organization has no worker pool ${pool}`,
    hint:
      didYouMean(pool, pools).hint ?? others ?? 'remove it, or ask the operator of the service for the pool',
  }
}
