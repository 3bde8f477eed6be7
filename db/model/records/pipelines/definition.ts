import { isDeepStrictEqual } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import { type Issue, invalid } from '../../errors.ts'
import { customName } from '../filters.ts'
import { kinds } from '../kinds/index.ts'
import { named, type Outcome, type Pipeline, type Stage } from './pipeline.ts'
import { nameFrom, PRESETS } from './presets.ts'

/** Checks and completes a pipeline as a client writes it. */

export interface StageInput {
  name?: string | undefined
  label?: string | undefined
  order?: number | undefined
  probability?: number | undefined
  outcome?: Outcome | undefined
  required_fields?: string[] | undefined
}

export interface PipelineInput {
  name?: string | undefined
  label?: string | undefined
  is_default?: boolean | undefined
  stages?: StageInput[] | undefined
  preset?: keyof typeof PRESETS | undefined
}

export type PipelinePatch = Pick<PipelineInput, 'label' | 'is_default' | 'stages'>

/** Throws `validation_error` with everything that is wrong. */
export function newPipeline(input: PipelineInput, others: readonly Pipeline[]): Pipeline {
  const preset = input.preset && PRESETS[input.preset]
  const issues: Issue[] = []
  if (!preset === !input.stages)
    issues.push(issue(['stages'], 'either stages or a preset is required, not both', 'missing'))
  const label = input.label ?? input.name ?? preset?.label
  const name = input.name ?? nameFrom(label ?? '')
  if (label === undefined || name === '')
    issues.push(
      issue(['name'], 'a name or a label from which a name can be made is required', 'missing', HINT),
    )
  else if ([name, label].some((text) => named(others, text)))
    issues.push(issue(['name'], 'another pipeline has this name or label', 'invalid_value'))
  const { stages, issues: wrong } = preset ? { stages: preset.stages, issues: [] } : read(input.stages ?? [])
  issues.push(...(input.stages ? wrong : []))
  if (issues.length > 0) throw invalid(issues)
  const now = new Date().toISOString()
  return {
    id: uuidv7(),
    name,
    label: label!,
    is_default: input.is_default ?? false,
    stages,
    version: 1,
    created_at: now,
    updated_at: now,
  }
}

const HINT = 'a name has letters, digits and underscores, such as enterprise_sales'

/**
 * The next version. A stage that `stages` does not name is removed; the members that a stage does not name stay. Throws
 * `validation_error`. @returns undefined if nothing changes.
 */
export function changedPipeline(
  before: Pipeline,
  patch: PipelinePatch,
  others: readonly Pipeline[],
): Pipeline | undefined {
  const { stages, issues } = patch.stages
    ? read(patch.stages, before.stages)
    : { stages: before.stages, issues: [] }
  if (patch.label !== undefined && named(others, patch.label))
    issues.push(issue(['label'], 'another pipeline has this name or label', 'invalid_value'))
  if (patch.is_default === false && before.is_default)
    issues.push(
      issue(
        ['is_default'],
        'an organization has one default pipeline',
        'invalid_value',
        'set is_default of another one',
      ),
    )
  if (issues.length > 0) throw invalid(issues)
  const { label = before.label, is_default = before.is_default } = patch
  const after = { ...before, label, is_default, stages }
  return isDeepStrictEqual(after, before) ? undefined : nextPipeline(after)
}

export const nextPipeline = (pipeline: Pipeline): Pipeline => ({
  ...pipeline,
  version: pipeline.version + 1,
  updated_at: new Date().toISOString(),
})

/** The stages in their order, and what is wrong with them. */
function read(inputs: StageInput[], before: readonly Stage[] = []): { stages: Stage[]; issues: Issue[] } {
  const issues: Issue[] = []
  const read = inputs.map((input, place) => {
    const wrong = (field: string, msg: string, hint?: string) =>
      issues.push(issue(['stages', place, field], msg, 'invalid_value', hint))
    const name = input.name ?? nameFrom(input.label ?? '')
    const was = before.find((stage) => stage.name === name)
    const { label = was?.label ?? name, outcome = was?.outcome ?? 'open' } = input
    const kept = was?.outcome === outcome ? was.probability : undefined
    const probability = input.probability ?? kept ?? CLOSED[outcome]
    const required_fields = input.required_fields ?? was?.required_fields ?? []
    if (name === '') wrong('name', 'a name, or a label from which one can be made, is required', HINT)
    if (probability === undefined) wrong('probability', 'an open stage needs a probability, from 0 to 100')
    else if ((CLOSED[outcome] ?? probability) !== probability)
      wrong('probability', `a stage that is ${outcome} has the probability ${CLOSED[outcome]}`)
    for (const field of required_fields)
      if (!REQUIRABLE.includes(field) && customName(field) === undefined)
        wrong(
          'required_fields',
          `${field} is not a field that a stage can require`,
          `fields are ${REQUIRABLE.join(', ')}, custom_fields.<name>`,
        )
    const stage: Stage = { name, label, outcome, probability: probability ?? 0, required_fields }
    return { stage, place, order: input.order ?? place + 1 }
  })
  for (const [index, { stage, place }] of read.entries()) {
    const earlier = read.slice(0, index).map(({ stage }) => stage)
    if (named(earlier, stage.name) ?? named(earlier, stage.label))
      issues.push(issue(['stages', place, 'name'], 'another stage has this name or label', 'invalid_value'))
  }
  if (!read.some(({ stage }) => stage.outcome === 'open'))
    issues.push(issue(['stages'], 'at least one stage must be open: new deals begin there', 'invalid_value'))
  const stages = read.toSorted((a, b) => a.order - b.order).map(({ stage }) => stage)
  return { stages, issues }
}

/** The probability of deals that are won or lost. */
const CLOSED: Partial<Record<Outcome, number>> = { won: 100, lost: 0 }

const PLACE = ['pipeline', 'stage', 'probability']

/** The fields of deals that a stage can require, besides custom fields. */
const REQUIRABLE = [
  'owner_id',
  'external_id',
  'tags',
  ...Object.entries(kinds.deals.fields).flatMap(([name, { readOnly, required }]) =>
    readOnly || required || PLACE.includes(name) ? [] : [name],
  ),
]

const issue = (at: PropertyKey[], msg: string, type: string, hint?: string): Issue => ({
  loc: ['body', ...at] as Issue['loc'],
  msg,
  type,
  ...(hint === undefined ? {} : { hint }),
})
