import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { envReferences } from '../authoring/env-references.ts'
import { lowerSpec } from '../authoring/lower.ts'
import { specSchema } from '../authoring/schema.ts'
import { withoutVerbatim } from '../authoring/verbatim.ts'
import { ports } from '../effects/index.ts'
import { findNodeType } from '../nodes/index.ts'

/** A custom field that a template reads or writes. */
export interface NeededField {
  entity: string
  name: string
  type: 'number'
}

/**
 * The templates by category, each with the custom fields that it needs. To add one: `<category>/<id>.yaml`, a line
 * here, and a case in test/worker/templates.test.ts.
 */
const TEMPLATES = {
  sales: {
    'new-lead-alert': [],
    'form-lead-follow-up': [],
    'lead-round-robin': [],
    'lead-scoring': [{ entity: 'contacts', name: 'lead_score', type: 'number' }],
    'deal-won-announcement': [],
    'deal-won-onboarding': [],
    'stale-deals': [],
    'lost-deal-win-back': [],
    'discount-approval': [],
    'proposal-follow-up': [],
    'no-show-recovery': [],
    'weekly-pipeline-report': [],
    'renewal-reminders': [],
    'enrich-company': [],
  },
  support: {
    'request-to-task': [],
    'ai-triage': [],
    'ai-reply-draft': [],
    'overdue-task-escalation': [],
    'satisfaction-survey': [],
    'nps-answer': [{ entity: 'contacts', name: 'nps_score', type: 'number' }],
    'churn-risk-alert': [],
    'refund-approval': [],
  },
  marketing: {
    'welcome-series': [],
    'newsletter-sync': [],
    're-engage-contacts': [],
    'mql-handoff': [],
    'webinar-registration': [],
    'referral-request': [],
    unsubscribe: [],
    'ad-audience': [],
  },
  operations: {
    'invoice-paid': [],
    'payment-reminder': [],
    'daily-task-digest': [],
    'companies-from-csv': [],
    'deal-to-erp': [],
    'deal-in-own-currency': [{ entity: 'deals', name: 'amount_in_own_currency', type: 'number' }],
    'failed-run-alert': [],
    'clean-phone-numbers': [],
    'site-check': [],
    'order-once': [],
  },
} satisfies Record<string, Record<string, NeededField[]>>

export type TemplateCategory = keyof typeof TEMPLATES
export const TEMPLATE_CATEGORIES = Object.keys(TEMPLATES) as TemplateCategory[]

/** What an organization needs before a workflow can do its work. */
export interface Requirements {
  /** Names of secrets. */
  secrets: string[]
  /** Names of environment variables that it reads as `env.<name>`. */
  env: string[]
  custom_fields: NeededField[]
  /** Environment variables of the service. */
  service_settings: string[]
}

export interface Template {
  id: string
  name: string
  description: string
  category: TemplateCategory
  requires: Requirements
  /** YAML. */
  spec: string
  /** The types of its nodes. */
  nodeTypes: string[]
}

/** All templates, sorted by name. Takes 0.1 s or more. They are not validated here: a test does that. */
export function readTemplates(): Template[] {
  const all = TEMPLATE_CATEGORIES.flatMap((category) =>
    Object.entries<NeededField[]>(TEMPLATES[category]).map(([id, fields]) => read(id, category, fields)),
  )
  return all.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function read(id: string, category: TemplateCategory, custom_fields: NeededField[]): Template {
  const spec = readFileSync(new URL(`${category}/${id}.yaml`, import.meta.url), 'utf8')
  const lowered = lowerSpec(specSchema.parse(parse(spec)))
  const { definition } = lowered
  const read = envReferences(withoutVerbatim(lowered))
  const named = (root: string) => unique(read.filter((one) => one.root === root).map(({ name }) => name))
  const nodeTypes = unique(definition.nodes.map(({ type }) => type))
  const effects = nodeTypes.flatMap((type) => findNodeType(type)?.effects ?? [])
  const service_settings = unique(effects.flatMap((effect) => ports[effect].variables ?? []))
  return {
    id,
    category,
    spec,
    nodeTypes,
    name: definition.name,
    description: definition.description ?? '',
    requires: { secrets: named('secrets'), env: named('env'), custom_fields, service_settings },
  }
}

const unique = <T extends string>(values: T[]): T[] => [...new Set(values)].sort()
