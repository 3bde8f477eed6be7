import type { KindDefinition } from '../kind.ts'

export const activity: KindDefinition = {
  description: 'Something that happened or is planned with others: a call, an email, a meeting.',
  upsertKeys: [],
  fields: {
    type: {
      type: 'enum',
      values: ['call', 'email', 'meeting', 'sms', 'note', 'task', 'status_change', 'system'],
      required: true,
      description: 'What kind of thing happened.',
    },
    subject: { type: 'text', description: 'What it was about.' },
    body: { type: 'text', max: 10_000, description: 'What was said or done.' },
    occurred_at: {
      type: 'datetime',
      filled: true,
      description: 'When it happened or is to happen; now where it is left out.',
    },
    duration_seconds: { type: 'integer', description: 'How long it took.' },
    direction: {
      type: 'enum',
      values: ['inbound', 'outbound'],
      description: 'Whether they came to us or we to them.',
    },
    outcome: { type: 'text', description: 'What came of it.' },
    status: {
      type: 'enum',
      values: ['planned', 'completed', 'cancelled', 'no_show'],
      default: 'completed',
      description: 'Whether it has happened.',
    },
    location: { type: 'text', description: 'Where it took place.' },
  },
  derive: ({ next, now }) => (next.occurred_at == null ? { occurred_at: now } : {}),
  example: { type: 'call', subject: 'Terms of delivery', duration_seconds: 540, direction: 'outbound' },
}
