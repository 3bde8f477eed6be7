import type { KindDefinition } from '../kind.ts'
import { lifecycle_stage } from '../lifecycle-stage.ts'

export const company: KindDefinition = {
  description: 'A company or another organization.',
  upsertKeys: ['domain'],
  fields: {
    name: { type: 'text', required: true, sorted: true, description: 'The name of the company.' },
    domain: {
      type: 'domain',
      description: 'The domain name. A web address is reduced to its host, without www.',
    },
    website: { type: 'url', description: 'The website.' },
    phone: {
      type: 'phone',
      description: 'A phone number, stored as E.164 if it parses and has no extension.',
    },
    email: { type: 'email', description: 'The email address; comparison is case-insensitive.' },
    industry: { type: 'text', description: 'The industry of the company.' },
    description: { type: 'text', max: 10_000, description: 'A description of the company.' },
    employee_count: { type: 'integer', description: 'The number of employees.' },
    annual_revenue: { type: 'money', description: 'The annual revenue, a decimal in `currency`.' },
    currency: {
      type: 'currency',
      description: 'An ISO 4217 code. Default: the currency of the organization.',
    },
    linkedin_url: { type: 'url', description: 'The LinkedIn page.' },
    address: { type: 'address', description: 'The postal address.' },
    type: {
      type: 'enum',
      values: ['prospect', 'customer', 'partner', 'vendor', 'competitor', 'other'],
      description: 'The relation to the organization.',
    },
    lifecycle_stage,
    parent_company_id: { type: 'reference', to: 'companies', description: 'The parent company.' },
  },
  example: { name: 'Analytical Engines Ltd', domain: 'engines.example', employee_count: 12 },
}
