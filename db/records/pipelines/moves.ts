import { AppError, conflict, type Issue, invalid } from '../../model/errors.ts'
import { named, namesOf, type Pipeline, type Stage } from '../../model/records/pipelines/pipeline.ts'
import type { RecordInput } from '../../model/records/schemas.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { updateMany } from '../update.ts'

/** The changes of deals that follow from a change of their pipeline. */

/** The stage to which the deals of a removed stage go, by its name. */
export type StageMoves = Record<string, string>

/** The maximum number of deals that one request changes. */
const MAX_CHANGED = 10_000
/** Number of deals that are written by one statement. */
const AT_ONCE = 500

interface DealChange {
  id: string
  patch: RecordInput
}

interface Deal {
  id: string
  stage: string
  probability: number
}

/** The changes of deals of a pipeline whose stages change. Throws `validation_error`, `conflict`. */
export async function movesWithin(
  tx: Tenant,
  before: Pipeline,
  after: Pipeline,
  moves: StageMoves,
): Promise<DealChange[]> {
  const kept = new Map(after.stages.map((stage) => [stage.name, stage]))
  const removed = before.stages.filter(({ name }) => !kept.has(name))
  requireMoves(after, namesOf(removed), moves)
  const changed = before.stages.filter(({ name, outcome, probability }) => {
    const now = kept.get(name)
    return now && (now.outcome !== outcome || now.probability !== probability)
  })
  const deals = await dealsIn(tx, before, [...removed, ...changed])
  const of = (name: string) => deals.filter(({ stage }) => stage === name)
  for (const { name } of removed)
    if (!Object.hasOwn(moves, name) && of(name).length > 0)
      throw conflict(`the stage ${name} has ${counted(of(name))}`, {
        param: 'stages',
        hint: `name the stage to which they go: "moves": {"${name}": "${after.stages[0]!.name}"}`,
        candidates: examples(of(name)),
      })
  for (const { name, outcome } of changed)
    if (kept.get(name)!.outcome !== outcome && of(name).length > 0)
      throw conflict(`the stage ${name} has ${counted(of(name))}, whose outcome would change`, {
        param: 'stages',
        hint: 'add a stage with the other outcome, and move the deals there',
        candidates: examples(of(name)),
      })
  const probabilities = new Map(before.stages.map(({ name, probability }) => [name, probability]))
  return deals.flatMap(({ id, stage, probability }): DealChange[] => {
    if (Object.hasOwn(moves, stage))
      return [{ id, patch: { stage: named(after.stages, moves[stage]!)!.name } }]
    // A probability that somebody gave to the deal stays.
    if (probability !== probabilities.get(stage)) return []
    return [{ id, patch: { probability: kept.get(stage)!.probability } }]
  })
}

function requireMoves({ name, stages }: Pipeline, removed: string[], moves: StageMoves): void {
  const issues = Object.entries(moves).flatMap(([from, to]): Issue[] => {
    const loc = ['body', 'moves', from]
    if (!removed.includes(from))
      return [{ loc, msg: 'is not a stage that this change removes', type: 'invalid_value' }]
    if (named(stages, to)) return []
    const hint = `stages of ${name} are ${namesOf(stages).join(', ')}`
    return [{ loc, msg: 'is not a stage of the pipeline', type: 'invalid_value', input: to, hint }]
  })
  if (issues.length > 0) throw invalid(issues)
}

/** The changes of the deals of a pipeline that is deleted. Throws `validation_error`, `conflict`. */
export async function movesTo(
  tx: Tenant,
  pipeline: Pipeline,
  moveTo: string | undefined,
  others: readonly Pipeline[],
): Promise<DealChange[]> {
  const target = moveTo === undefined ? undefined : others.find(({ id, name }) => [id, name].includes(moveTo))
  if (moveTo !== undefined && !target)
    throw invalid([
      {
        loc: ['query', 'move_to'],
        msg: 'is not another pipeline',
        type: 'invalid_value',
        input: moveTo,
        hint: `pipelines are ${namesOf(others).join(', ')}`,
      },
    ])
  const deals = await dealsIn(tx, pipeline, pipeline.stages)
  if (deals.length > 0 && !target)
    throw conflict(`the pipeline ${pipeline.name} has ${counted(deals)}`, {
      param: 'move_to',
      hint: `name the pipeline to which they go: ?move_to=${others[0]!.name}`,
      candidates: examples(deals),
    })
  return deals.map(({ id, stage }) => ({
    id,
    patch: { pipeline: target!.name, stage: stageLike(pipeline.stages, stage, target!).name },
  }))
}

/** The stage of the same name, or else the first one with the same outcome. Throws `conflict` if there is none. */
function stageLike(stages: readonly Stage[], name: string, target: Pipeline): Stage {
  const outcome = stages.find((stage) => stage.name === name)?.outcome
  const like =
    target.stages.find((stage) => stage.name === name && stage.outcome === outcome) ??
    target.stages.find((stage) => stage.outcome === outcome)
  if (!like)
    throw conflict(`the pipeline ${target.name} has no stage that is ${outcome}, for the deals in ${name}`, {
      hint: 'add one, or move these deals first',
    })
  return like
}

/** The deals in these stages, by id. Throws `conflict` if there are too many. */
async function dealsIn(tx: Tenant, pipeline: Pipeline, stages: readonly Stage[]): Promise<Deal[]> {
  if (stages.length === 0) return []
  const deals = await tx
    .trx('deals')
    .where({ organization_id: tx.organizationId, pipeline: pipeline.name })
    .whereNull('deleted_at')
    .whereIn('stage', namesOf(stages))
    .orderBy('id')
    .limit(MAX_CHANGED + 1)
    .select<Deal[]>('id', 'stage', 'probability')
  if (deals.length > MAX_CHANGED)
    throw conflict(`more than ${MAX_CHANGED} deals would change`, {
      hint: 'move them first, by bulk updates of deals',
    })
  return deals
}

const counted = ({ length }: readonly Deal[]) => (length === 1 ? '1 deal' : `${length} deals`)

const examples = (deals: readonly Deal[]) => deals.slice(0, 3).map(({ id }) => ({ object: 'deal', id }))

/** Throws `conflict` if a deal lacks a field that its new stage requires. */
export async function changeDeals(tx: Tenant, changes: DealChange[]): Promise<void> {
  for (let start = 0; start < changes.length; start += AT_ONCE) {
    const part = changes.slice(start, start + AT_ONCE)
    const outcomes = await updateMany(tx, 'deals', part)
    for (const [index, outcome] of outcomes.entries())
      if ('error' in outcome) throw cannotMove(outcome.error, part[index]!)
  }
}

function cannotMove(error: unknown, { id }: DealChange): unknown {
  const [issue] = error instanceof AppError ? (error.details.issues ?? []) : []
  if (!issue) return error
  return conflict(`a deal cannot change with its pipeline: ${issue.loc.slice(1).join('.')} ${issue.msg}`, {
    candidates: [{ object: 'deal', id }],
    hint: 'change this deal first',
  })
}
