import { CellProblem } from '../csv/read-cell.ts'
import { OUTCOMES, type Outcome, type Pipeline, placed } from '../records/pipelines/pipeline.ts'
import type { RecordInput } from '../records/schemas.ts'
import type { Target } from './targets.ts'

/** The outcome of a deal where another system keeps it beside the stage: a won deal is still in its last open stage. */
export interface GivenOutcome {
  outcome: Outcome
  pipelines: readonly Pipeline[]
}

/** Throws CellProblem. */
export function readOutcome({ pipelines = [] }: Target, text: string): GivenOutcome {
  const outcome = OUTCOMES.find((one) => one === text.trim().toLowerCase())
  if (!outcome) throw new CellProblem(`must be ${OUTCOMES.join(', ')}`)
  return { outcome, pipelines }
}

/** Puts a won or lost deal into the first such stage of its pipeline. */
export function settleOutcome({
  fields,
  outcome: given,
}: {
  fields: RecordInput
  outcome?: GivenOutcome
}): void {
  if (!given || given.outcome === 'open') return
  const { pipeline, stage } = placed(given.pipelines, fields)
  if (stage?.outcome === given.outcome) return
  const closed = pipeline?.stages.find(({ outcome }) => outcome === given.outcome)
  if (closed) fields.stage = closed.name
}
