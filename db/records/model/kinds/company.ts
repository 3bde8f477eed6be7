import type { KindDefinition } from '../kind.ts'

export const company: KindDefinition = {
  description: 'A company or another organization.',
  upsertKeys: ['domain'],
  fields: {
    name: { type: 'text', required: true, description: 'The name it is known by.' },
    domain: { type: 'domain', description: 'Its domain name; of a web address the host, without www.' },
    website: { type: 'url', description: 'A web address.' },
    phone: { type: 'phone', description: 'Kept as E.164 where it parses and has no extension.' },
    email: { type: 'email', description: 'Compared without regard to case.' },
    industry: { type: 'text', description: 'The branch it works in.' },
    description: { type: 'text', max: 10_000, description: 'What it does.' },
    employee_count: { type: 'integer', description: 'How many people work there.' },
    annual_revenue: { type: 'money', description: 'A decimal, in `currency`.' },
    currency: { type: 'currency', description: "ISO 4217; the organization's where it is left out." },
    linkedin_url: { type: 'url', description: 'The page on LinkedIn.' },
    address: { type: 'address', description: 'Postal address.' },
    type: {
      type: 'enum',
      values: ['prospect', 'customer', 'partner', 'vendor', 'competitor', 'other'],
      description: 'What it is to the organization.',
    },
    lifecycle_stage: {
      type: 'enum',
      values: ['subscriber', 'lead', 'mql', 'sql', 'opportunity', 'customer', 'evangelist', 'other'],
      description: 'Where it stands in its life as a customer.',
    },
    parent_company_id: { type: 'reference', to: 'companies', description: 'The company that owns it.' },
  },
  example: { name: 'Analytical Engines Ltd', domain: 'engines.example', employee_count: 12 },
}
