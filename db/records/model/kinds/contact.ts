import type { KindDefinition } from '../kind.ts'

export const contact: KindDefinition = {
  description: 'A person.',
  atLeastOneOf: ['email', 'phone', 'first_name', 'last_name'],
  upsertKeys: ['email'],
  fields: {
    first_name: { type: 'text', description: 'Given name.' },
    last_name: { type: 'text', description: 'Family name.' },
    email: { type: 'email', description: 'Compared without regard to case.' },
    phone: { type: 'phone', description: 'Kept as E.164 where it parses and has no extension.' },
    mobile_phone: { type: 'phone', description: 'Kept as E.164 where it parses and has no extension.' },
    job_title: { type: 'text', description: 'Position in the company.' },
    company_id: {
      type: 'reference',
      to: 'companies',
      description: 'The company that the contact works for.',
    },
    website: { type: 'url', description: 'A web address.' },
    linkedin_url: { type: 'url', description: 'The profile on LinkedIn.' },
    address: { type: 'address', description: 'Postal address.' },
    timezone: { type: 'timezone', description: 'IANA name, such as Europe/Zurich.' },
    lead_source: { type: 'text', description: 'Where the contact came from.' },
    lead_status: {
      type: 'enum',
      values: ['new', 'open', 'in_progress', 'attempted', 'connected', 'unqualified'],
      description: 'How far sales has got.',
    },
    lifecycle_stage: {
      type: 'enum',
      values: ['subscriber', 'lead', 'mql', 'sql', 'opportunity', 'customer', 'evangelist', 'other'],
      description: 'Where the contact stands in its life as a customer.',
    },
    do_not_contact: { type: 'boolean', default: false, description: 'Wants no messages.' },
    last_contacted_at: { type: 'datetime', description: 'When someone last spoke with the contact.' },
  },
  example: { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com', phone: '+41446681800' },
}
