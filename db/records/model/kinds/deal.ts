import type { KindDefinition } from '../kind.ts'

/** How likely a deal of each stage is to be won, in percent, until somebody says otherwise. */
const PROBABILITY: Record<string, number> = {
  lead: 10,
  qualified: 25,
  proposal: 50,
  negotiation: 75,
  won: 100,
  lost: 0,
}

export const deal: KindDefinition = {
  description: 'A sale that is hoped for, from the first lead until it is won or lost.',
  upsertKeys: [],
  fields: {
    name: { type: 'text', required: true, description: 'What it is called.' },
    amount: { type: 'money', description: 'A decimal, in `currency`.' },
    currency: { type: 'currency', description: "ISO 4217; the organization's where it is left out." },
    pipeline: {
      type: 'text',
      default: 'default',
      description: 'The pipeline that it goes through.',
    },
    stage: {
      type: 'enum',
      values: Object.keys(PROBABILITY),
      default: 'lead',
      description: 'How far it has got.',
    },
    probability: {
      type: 'integer',
      max: 100,
      percent: true,
      filled: true,
      description:
        'Percent. Where it is left out, or the stage changes without it: 10, 25, 50, 75, 100 or 0, by the stage.',
    },
    expected_close_date: { type: 'date', description: 'The day on which it should be decided.' },
    closed_at: { type: 'datetime', readOnly: true, description: 'When it was won or lost.' },
    lost_reason: { type: 'text', max: 2_000, description: 'Why it was lost.' },
    company_id: { type: 'reference', to: 'companies', description: 'The company that would buy.' },
    contact_id: { type: 'reference', to: 'contacts', description: 'The contact to talk with.' },
    source: { type: 'text', description: 'Where it came from.' },
    deal_type: {
      type: 'enum',
      values: ['new_business', 'existing_business', 'renewal'],
      description: 'Who buys: somebody new, a customer something more, or the same again.',
    },
  },
  derive({ next, before, given, now }) {
    const stage = next.stage as string
    const moved = stage !== before?.stage
    const probability = given.probability ?? (moved ? null : next.probability)
    return {
      probability: probability ?? PROBABILITY[stage],
      ...(moved ? { closed_at: isClosed(stage) ? now : null } : {}),
    }
  },
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
      example: { stage: 'lost', lost_reason: 'Too dear' },
    },
  },
  example: { name: 'Second engine', amount: '125000.00', currency: 'GBP', stage: 'proposal' },
}

const isClosed = (stage: unknown) => stage === 'won' || stage === 'lost'
