import type { KindDefinition } from '../kind.ts'
import { lifecycle_stage } from '../lifecycle-stage.ts'

export const contact: KindDefinition = {
  description: 'A person.',
  atLeastOneOf: ['email', 'phone', 'first_name', 'last_name'],
  upsertKeys: ['email'],
  fields: {
    first_name: { type: 'text', description: 'The given name.' },
    last_name: { type: 'text', sorted: true, description: 'The family name.' },
    email: { type: 'email', description: 'The email address; comparison is case-insensitive.' },
    phone: {
      type: 'phone',
      description: 'A phone number, stored as E.164 if it parses and has no extension.',
    },
    mobile_phone: {
      type: 'phone',
      description: 'A phone number, stored as E.164 if it parses and has no extension.',
    },
    other_emails: {
      type: 'emails',
      default: [],
      description:
        'Further email addresses, by which upserts, imports and incoming webhooks find the contact, too. A write is refused if another contact has one.',
    },
    other_phones: {
      type: 'phones',
      default: [],
      description: 'Further phone numbers, by which duplicates are found, too.',
    },
    job_title: { type: 'text', description: 'The position in the company.' },
    company_id: {
      type: 'reference',
      to: 'companies',
      description: 'The company of the contact.',
    },
    website: { type: 'url', description: 'The website.' },
    linkedin_url: { type: 'url', description: 'The LinkedIn profile.' },
    address: { type: 'address', description: 'The postal address.' },
    timezone: { type: 'timezone', description: 'The time zone, as an IANA name such as Europe/Zurich.' },
    lead_source: { type: 'text', description: 'The source of the lead.' },
    lead_status: {
      type: 'enum',
      values: ['new', 'open', 'in_progress', 'attempted', 'connected', 'unqualified'],
      description: 'The status of the lead.',
    },
    lifecycle_stage,
    do_not_contact: {
      type: 'boolean',
      default: false,
      description: 'Whether the contact must not be contacted.',
    },
    last_contacted_at: { type: 'datetime', description: 'The time of the last contact.' },
  },
  derive: ({ next }) => othersOf(next),
  example: { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com', phone: '+41446681800' },
}

/** What is the own email or phone is none of the others. */
function othersOf(next: Readonly<Record<string, unknown>>) {
  const without = (list: unknown, own: unknown[]) => {
    const taken = own.flatMap((value) => (typeof value === 'string' ? value.toLowerCase() : []))
    return ((list ?? []) as string[]).filter((value) => !taken.includes(value.toLowerCase()))
  }
  return {
    other_emails: without(next.other_emails, [next.email]),
    other_phones: without(next.other_phones, [next.phone, next.mobile_phone]),
  }
}
