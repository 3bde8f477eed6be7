import type { KindDefinition } from '../kind.ts'

export const activity: KindDefinition = {
  description: 'A past or planned interaction: a call, an email, a meeting.',
  upsertKeys: [],
  fields: {
    type: {
      type: 'enum',
      values: ['call', 'email', 'meeting', 'sms', 'note', 'task', 'status_change', 'system'],
      required: true,
      description: 'The type of the activity.',
    },
    subject: { type: 'text', description: 'The subject of the activity.' },
    body: { type: 'text', max: 100_000, description: 'The content of the activity.' },
    occurred_at: {
      type: 'datetime',
      filled: true,
      sorted: true,
      description: 'The time of the activity. Default: now.',
    },
    duration_seconds: { type: 'integer', description: 'The duration in seconds.' },
    direction: {
      type: 'enum',
      values: ['inbound', 'outbound'],
      description: 'The direction of the interaction.',
    },
    outcome: { type: 'text', description: 'The outcome of the activity.' },
    status: {
      type: 'enum',
      values: ['planned', 'completed', 'cancelled', 'no_show'],
      default: 'completed',
      description: 'The status of the activity.',
    },
    location: { type: 'text', description: 'The location of the activity.' },
  },
  derive: ({ next, now }) => (next.occurred_at == null ? { occurred_at: now } : {}),
  columns: ['type', 'direction', 'outcome', 'status', 'occurred_at'],
  dimensions: ['type', 'status', 'direction'],
  synonyms: {
    type: 'activitytype',
    body: 'notes notebody content description',
    occurred_at: 'activitydate date',
    outcome: 'calloutcome meetingoutcome',
  },
  example: { type: 'call', subject: 'Terms of delivery', duration_seconds: 540, direction: 'outbound' },
}
