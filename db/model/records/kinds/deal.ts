import type { Issue } from '../../errors.ts'
import { MAY_BE_GIVEN } from '../backdated.ts'
import type { Draft, KindDefinition } from '../kind.ts'
import { OUTCOMES, placed, placeIssues, stageNames } from '../pipelines/pipeline.ts'
import { DEFAULT_PIPELINES } from '../pipelines/presets.ts'
import { NOTE_NAMES } from '../synonym-names.ts'

export const deal: KindDefinition = {
  description: 'A possible sale, from the first lead until it is won or lost.',
  upsertKeys: [],
  hasPipelines: true,
  fields: {
    name: { type: 'text', required: true, description: 'The name of the deal.' },
    amount: {
      type: 'money',
      sorted: true,
      description: 'The amount, a decimal in `currency`; with line items their sum, which no write changes.',
    },
    currency: {
      type: 'currency',
      description: 'An ISO 4217 code. Default: the currency of the organization.',
    },
    pipeline: {
      type: 'enum',
      values: ['default'],
      ofOrganization: true,
      filled: true,
      description: 'The name of a pipeline (`/v1/pipelines`). Default: the default one of the organization.',
    },
    stage: {
      type: 'enum',
      values: stageNames(DEFAULT_PIPELINES),
      ofOrganization: true,
      filled: true,
      description:
        'The name of a stage of the pipeline. Default: its first open one. Without other pipelines: lead, qualified, proposal, negotiation, won, lost.',
    },
    outcome: {
      type: 'enum',
      values: OUTCOMES,
      readOnly: true,
      filled: true,
      description: 'Whether the deal is open, won or lost, as its stage says.',
    },
    stage_changed_at: {
      type: 'datetime',
      readOnly: true,
      backdated: true,
      filled: true,
      sorted: true,
      description: `The time since which the deal is in its stage. ${MAY_BE_GIVEN}`,
    },
    probability: {
      type: 'integer',
      max: 100,
      percent: true,
      filled: true,
      description:
        'The probability of winning, in percent. Default, also when the stage changes: that of the stage.',
    },
    expected_close_date: { type: 'date', sorted: true, description: 'The expected date of the decision.' },
    closed_at: {
      type: 'datetime',
      readOnly: true,
      backdated: true,
      description: `The time at which the deal was won or lost. ${MAY_BE_GIVEN}`,
    },
    lost_reason: { type: 'text', max: 2_000, description: 'The reason for losing the deal.' },
    company_id: { type: 'reference', to: 'companies', description: 'The buying company.' },
    contact_id: { type: 'reference', to: 'contacts', description: 'The contact person.' },
    source: { type: 'text', description: 'The source of the deal.' },
    deal_type: {
      type: 'enum',
      values: ['new_business', 'existing_business', 'renewal'],
      description: 'Whether the buyer is new, buys more, or renews.',
    },
  },
  derive({ next, before, given, now, pipelines }) {
    const { pipeline, stage } = pipelines ? placed(pipelines, next) : {}
    if (!pipeline || !stage) return {}
    const { outcome } = stage
    const moved = stage.name !== before?.stage || pipeline.name !== before.pipeline
    const probability = given.probability ?? (moved ? null : next.probability)
    const ended = outcome === before?.outcome ? before.closed_at : now
    const closed_at = outcome === 'open' ? null : (given.closed_at ?? ended)
    // A deal that comes in closed went into its stage when it was closed.
    const entered = before ? now : (closed_at ?? now)
    return {
      pipeline: pipeline.name,
      stage: stage.name,
      outcome,
      stage_changed_at: given.stage_changed_at ?? (moved ? entered : before.stage_changed_at),
      probability: probability ?? stage.probability,
      closed_at,
    }
  },
  check(draft) {
    const { before, given, pipelines } = draft
    const isPlaced = !before || given.pipeline !== undefined || given.stage !== undefined
    const unplaced = pipelines && isPlaced ? placeIssues(pipelines, draft.next) : []
    return unplaced.length > 0 ? unplaced : [...openIssues(draft), ...requiredIssues(draft)]
  },
  events: {
    stage_changed: {
      when: (record, before) =>
        before !== undefined && (record.stage !== before.stage || record.pipeline !== before.pipeline),
      example: { stage: 'negotiation' },
    },
    won: {
      when: (record, before) => record.outcome === 'won' && before?.outcome !== 'won',
      example: { stage: 'won' },
    },
    lost: {
      when: (record, before) => record.outcome === 'lost' && before?.outcome !== 'lost',
      example: { stage: 'lost', lost_reason: 'Too expensive' },
    },
  },
  columns: ['amount', 'stage', 'probability', 'expected_close_date', 'company_id', 'created_at'],
  dimensions: ['stage', 'pipeline', 'outcome', 'deal_type', 'source', 'currency'],
  synonyms: {
    name: 'dealname opportunityname name title deal opportunity subject projectname',
    amount: 'amount dealamount dealvalue value total price budget revenue',
    currency: 'currency currencycode',
    pipeline: 'pipeline dealpipeline',
    stage: 'stage dealstage pipelinestage',
    probability: 'probability',
    expected_close_date: 'expectedclosedate closedate expectedclose',
    lost_reason: 'lostreason closedlostreason',
    company_name:
      'company companyname organization organisation organizationname account accountname associatedcompany primaryassociatedcompany',
    source: 'source leadsource utmsource dealsource',
    deal_type: 'dealtype',
    tags: 'tags tag labels',
    external_id: 'externalid',
    note_content: `${NOTE_NAMES} description`,
  },
  example: { name: 'Second engine', amount: '125000.00', currency: 'GBP', stage: 'proposal' },
}

type Checked = Omit<Draft, 'actor'>

/** Only a closed deal has a time of its end. */
function openIssues({ next, given, pipelines }: Checked): Issue[] {
  if (given.closed_at == null || !pipelines) return []
  if (placed(pipelines, next).stage?.outcome !== 'open') return []
  return [
    {
      loc: ['body', 'closed_at'],
      msg: 'the deal is open: only a deal in a stage that is won or lost has this time',
      type: 'invalid_value',
    },
  ]
}

/**
 * The fields that the stage requires: checked when a deal enters it, and when one of them is cleared, so that deals which
 * were there before the rule can still be changed.
 */
function requiredIssues({ next, before, given, pipelines }: Checked): Issue[] {
  const { pipeline, stage } = pipelines ? placed(pipelines, next) : {}
  if (!pipeline || !stage) return []
  const moved = stage.name !== before?.stage || pipeline.name !== before.pipeline
  const valueAt = (values: Draft['next'], field: string) =>
    field.split('.').reduce<unknown>((at, key) => (at as Draft['next'] | null | undefined)?.[key], values)
  return stage.required_fields
    .filter((field) => isMissing(valueAt(next, field)) && (moved || valueAt(given, field) !== undefined))
    .map((field) => ({
      loc: ['body', ...field.split('.')],
      msg: `is required by the stage ${stage.name}`,
      type: 'missing',
    }))
}

const isMissing = (value: unknown): boolean => value == null || (Array.isArray(value) && value.length === 0)
