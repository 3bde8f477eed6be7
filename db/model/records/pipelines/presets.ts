import type { Outcome, Pipeline, Stage } from './pipeline.ts'

/** The pipelines that a new organization and other systems begin with. */
export const PRESETS = {
  default: preset('Default', [
    ['Lead', 10],
    ['Qualified', 25],
    ['Proposal', 50],
    ['Negotiation', 75],
    ['Won', 100, 'won'],
    ['Lost', 0, 'lost'],
  ]),
  hubspot: preset('Sales pipeline', [
    ['Appointment scheduled', 20],
    ['Qualified to buy', 40],
    ['Presentation scheduled', 60],
    ['Decision maker bought-in', 80],
    ['Contract sent', 90],
    ['Closed won', 100, 'won'],
    ['Closed lost', 0, 'lost'],
  ]),
  // Pipedrive counts each open deal in full, until its owner enters a probability.
  pipedrive: preset('Pipeline', [
    ['Qualified', 100],
    ['Contact made', 100],
    ['Demo scheduled', 100],
    ['Proposal made', 100],
    ['Negotiations started', 100],
    ['Won', 100, 'won'],
    ['Lost', 0, 'lost'],
  ]),
  salesforce: preset('Opportunities', [
    ['Prospecting', 10],
    ['Qualification', 10],
    ['Needs analysis', 20],
    ['Value proposition', 50],
    ['Id. decision makers', 60],
    ['Perception analysis', 70],
    ['Proposal/price quote', 75],
    ['Negotiation/review', 90],
    ['Closed won', 100, 'won'],
    ['Closed lost', 0, 'lost'],
  ]),
}

type Written = [label: string, probability: number, outcome?: Outcome]

function preset(label: string, stages: Written[]): { label: string; stages: Stage[] } {
  return {
    label,
    stages: stages.map(([label, probability, outcome = 'open']) => ({
      name: nameFrom(label),
      label,
      probability,
      outcome,
      required_fields: [],
    })),
  }
}

/** `Proposal/price quote` is `proposal_price_quote`. */
export function nameFrom(label: string): string {
  return label
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}+/gu, '')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[_0-9]+|_+$/g, '')
}

/**
 * The pipeline that each organization has until it changes its pipelines. It has no row of its own, so its id is that of
 * the organization.
 */
export const firstPipeline = (organizationId: string, created_at = BEGINNING): Pipeline => ({
  id: organizationId,
  name: 'default',
  ...PRESETS.default,
  is_default: true,
  version: 1,
  created_at,
  updated_at: created_at,
})

/** The times of pipelines that an organization has not changed: nobody asks for them. */
const BEGINNING = '1970-01-01T00:00:00.000Z'

export const DEFAULT_PIPELINES: readonly Pipeline[] = [firstPipeline('00000000-0000-0000-0000-000000000000')]
