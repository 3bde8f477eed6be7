import { nearest } from '../../../../workflows/shared/nearest.ts'
import type { Issue } from '../../errors.ts'

/** How a deal in a stage stands: closed deals are won or lost. */
export const OUTCOMES = ['open', 'won', 'lost'] as const
export type Outcome = (typeof OUTCOMES)[number]

export interface Stage {
  /** The value of `deal.stage`. */
  name: string
  label: string
  /** In percent: that of the deals which enter the stage. */
  probability: number
  outcome: Outcome
  /** Fields that a deal must have in this stage: native ones, and `custom_fields.<name>`. */
  required_fields: string[]
}

/** A pipeline, as it is stored. Its stages are in their order. */
export interface Pipeline {
  id: string
  /** The value of `deal.pipeline`. */
  name: string
  label: string
  /** That of deals without a `pipeline`: one in each organization. */
  is_default: boolean
  stages: Stage[]
  version: number
  created_at: string
  updated_at: string
}

/** The fields of a deal that name its pipeline and stage. */
type Place = Readonly<Record<string, unknown>>

/** The pipeline of a deal and its stage there; undefined where the organization has no pipeline or stage of that name. */
export interface Placed {
  pipeline: Pipeline | undefined
  stage: Stage | undefined
}

/** Where a deal is. Without a pipeline it is in the default one, without a stage in the first open one. */
export function placed(pipelines: readonly Pipeline[], { pipeline: of, stage: at }: Place): Placed {
  const pipeline = of == null ? defaultOf(pipelines) : named(pipelines, String(of))
  const stage = at == null ? pipeline && firstOpen(pipeline) : pipeline && named(pipeline.stages, String(at))
  return { pipeline, stage }
}

export const defaultOf = (pipelines: readonly Pipeline[]): Pipeline =>
  pipelines.find(({ is_default }) => is_default)!

export const firstOpen = ({ stages }: Pipeline): Stage => stages.find(({ outcome }) => outcome === 'open')!

/** By its name, else by its label, which forms, files and other systems have: `Proposal made` is `proposal_made`. */
export function named<T extends { name: string; label: string }>(
  all: readonly T[],
  text: string,
): T | undefined {
  const wanted = plain(text)
  return (
    all.find(({ name }) => name === text) ??
    (wanted === ''
      ? undefined
      : all.find(({ name, label }) => plain(name) === wanted || plain(label) === wanted))
  )
}

const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')

/** The issues of a deal whose pipeline or stage the organization does not have. */
export function placeIssues(pipelines: readonly Pipeline[], place: Place): Issue[] {
  const { pipeline, stage } = placed(pipelines, place)
  if (!pipeline) {
    const names = namesOf(pipelines)
    return [unknown('pipeline', place.pipeline, 'is not a pipeline of the organization', names, 'pipelines')]
  }
  if (stage) return []
  const others = pipelines.filter(({ stages }) => named(stages, String(place.stage)))
  const elsewhere = others.length > 0 ? `: it is one of ${others.map(({ name }) => name).join(', ')}` : ''
  const msg = `is not a stage of the pipeline ${pipeline.name}${elsewhere}`
  return [unknown('stage', place.stage, msg, namesOf(pipeline.stages), `stages of ${pipeline.name}`)]
}

function unknown(field: string, given: unknown, msg: string, names: string[], what: string): Issue {
  const meant = nearest(String(given), names)
  return {
    loc: ['body', field],
    msg,
    type: 'invalid_value',
    input: String(given).slice(0, 200),
    hint: `${meant ? `did you mean ${meant}? ` : ''}${what} are ${names.join(', ')}`,
  }
}

/**
 * The values of a deal that comes back from a former time: those that its place has now. Undefined if its place is gone.
 */
export function settled(
  pipelines: readonly Pipeline[],
  deal: Readonly<Record<string, unknown>>,
  now: string,
): Record<string, unknown> | undefined {
  const { stage } = placed(pipelines, deal)
  return stage && outcomeOf(stage, deal, now)
}

/** The same; a deal whose place is gone goes to the first stage with its outcome, of its pipeline or the default one. */
export function resettled(
  pipelines: readonly Pipeline[],
  deal: Readonly<Record<string, unknown>>,
  now: string,
): Record<string, unknown> {
  const { pipeline = defaultOf(pipelines), stage: same } = placed(pipelines, deal)
  if (same) return outcomeOf(same, deal, now)
  const stage = pipeline.stages.find(({ outcome }) => outcome === deal.outcome) ?? firstOpen(pipeline)
  return {
    pipeline: pipeline.name,
    stage: stage.name,
    probability: stage.probability,
    stage_changed_at: now,
    ...outcomeOf(stage, deal, now),
  }
}

const outcomeOf = ({ outcome }: Stage, { closed_at }: Readonly<Record<string, unknown>>, now: string) => ({
  outcome,
  closed_at: outcome === 'open' ? null : (closed_at ?? now),
})

export const namesOf = (all: readonly { name: string }[]): string[] => all.map(({ name }) => name)

/** The names of the stages of all pipelines, each once. */
export const stageNames = (pipelines: readonly Pipeline[]): string[] => [
  ...new Set(pipelines.flatMap(({ stages }) => namesOf(stages))),
]
