import { MAY_BE_GIVEN } from '../backdated.ts'
import type { KindDefinition } from '../kind.ts'

/** The default probability of winning for each stage, in percent. */
const PROBABILITY: Record<string, number> = {
  lead: 10,
  qualified: 25,
  proposal: 50,
  negotiation: 75,
  won: 100,
  lost: 0,
}

export const deal: KindDefinition = {
  description: 'A possible sale, from the first lead until it is won or lost.',
  upsertKeys: [],
  fields: {
    name: { type: 'text', required: true, description: 'The name of the deal.' },
    amount: { type: 'money', sorted: true, description: 'The amount, a decimal in `currency`.' },
    currency: {
      type: 'currency',
      description: 'An ISO 4217 code. Default: the currency of the organization.',
    },
    pipeline: {
      type: 'text',
      default: 'default',
      description: 'The pipeline of the deal.',
    },
    stage: {
      type: 'enum',
      values: Object.keys(PROBABILITY),
      default: 'lead',
      description: 'The stage in the pipeline.',
    },
    probability: {
      type: 'integer',
      max: 100,
      percent: true,
      filled: true,
      description:
        'The probability of winning, in percent. Default, also when the stage changes: that of the stage (10, 25, 50, 75, 100 or 0).',
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
  derive({ next, before, given, now }) {
    const stage = next.stage as string
    const moved = stage !== before?.stage
    const probability = given.probability ?? (moved ? null : next.probability)
    return {
      probability: probability ?? PROBABILITY[stage],
      closed_at: isClosed(stage) ? (given.closed_at ?? (moved ? now : before?.closed_at)) : null,
    }
  },
  check: ({ next, given }) =>
    given.closed_at != null && !isClosed(next.stage)
      ? [
          {
            loc: ['body', 'closed_at'],
            msg: 'the deal is open: only a deal with the stage won or lost has this time',
            type: 'invalid_value',
          },
        ]
      : [],
  events: {
    stage_changed: {
      when: (record, before) => before !== undefined && record.stage !== before.stage,
      example: { stage: 'negotiation' },
    },
    won: {
      when: (record, before) => record.stage === 'won' && before?.stage !== 'won',
      example: { stage: 'won' },
    },
    lost: {
      when: (record, before) => record.stage === 'lost' && before?.stage !== 'lost',
      example: { stage: 'lost', lost_reason: 'Too expensive' },
    },
  },
  example: { name: 'Second engine', amount: '125000.00', currency: 'GBP', stage: 'proposal' },
}

const isClosed = (stage: unknown) => stage === 'won' || stage === 'lost'
