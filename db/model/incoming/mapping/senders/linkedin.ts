import type { Sender } from './types.ts'

/** Notifications of leads, which name the lead. https://learn.microsoft.com/linkedin/marketing/lead-sync/leadsync */
export const linkedin: Sender = {
  name: 'LinkedIn',
  documentation: 'https://learn.microsoft.com/linkedin/marketing/lead-sync/leadsync',
  verification: { type: 'linkedin' },
  matches: ({ payload }) => payload.type === 'LEAD_ACTION' && typeof payload.leadGenFormResponse === 'string',
  isNotice: () => true,
  fields: {},
}
