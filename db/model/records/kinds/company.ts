import type { KindDefinition } from '../kind.ts'
import { lifecycle_stage } from '../lifecycle-stage.ts'
import { ADDRESS_NAMES, NOTE_NAMES } from '../synonym-names.ts'

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
  columns: ['domain', 'industry', 'type', 'lifecycle_stage', 'owner_id', 'created_at'],
  dimensions: ['type', 'lifecycle_stage', 'industry'],
  isFoundByName: true,
  synonyms: {
    name: 'companyname company organizationname organisationname organization organisation businessname business accountname name firma unternehmen entreprise societe empresa azienda',
    domain: 'domain companydomain domainname companydomainname',
    website: 'website websiteurl url homepage web site companywebsite',
    phone: 'phone phonenumber telephone tel companyphone telefon telefono phones phonenumbers',
    email: 'email emailaddress mail companyemail emails emailaddresses',
    industry: 'industry sector branche',
    description: 'description about',
    employee_count: 'employeecount employees numberofemployees companysize size headcount',
    linkedin_url: 'linkedinurl linkedin linkedincompanypage',
    tags: 'tags tag labels',
    external_id: 'externalid',
    note_content: NOTE_NAMES,
    ...ADDRESS_NAMES,
  },
  example: { name: 'Analytical Engines Ltd', domain: 'engines.example', employee_count: 12 },
}
