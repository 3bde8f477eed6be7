import type { KindDefinition } from '../kind.ts'

export const task: KindDefinition = {
  description: 'Something that somebody has to do.',
  upsertKeys: [],
  fields: {
    title: { type: 'text', required: true, description: 'What is to be done.' },
    body: { type: 'text', max: 10_000, description: 'Everything else about it.' },
    status: {
      type: 'enum',
      values: ['todo', 'in_progress', 'waiting', 'done', 'cancelled'],
      default: 'todo',
      description: 'How far it has got.',
    },
    priority: {
      type: 'enum',
      values: ['low', 'medium', 'high', 'urgent'],
      default: 'medium',
      description: 'How much it matters.',
    },
    type: {
      type: 'enum',
      values: ['todo', 'call', 'email', 'meeting'],
      default: 'todo',
      description: 'What kind of work it is.',
    },
    due_at: { type: 'datetime', description: 'When it should be done.' },
    reminder_at: { type: 'datetime', description: 'When to remind the assignee.' },
    completed_at: { type: 'datetime', readOnly: true, description: 'When it was done.' },
    assignee_id: { type: 'user', description: 'The user who does it.' },
  },
  derive({ next, before, now }) {
    if (next.status === before?.status) return {}
    return { completed_at: next.status === 'done' ? now : null }
  },
  events: {
    assigned: {
      when: ({ assignee_id }, before) => assignee_id !== null && assignee_id !== before?.assignee_id,
      example: { assignee_id: '01890a5d-ac96-774b-bcce-b302099a8061' },
    },
    completed: {
      when: ({ status }, before) => status === 'done' && before?.status !== 'done',
      example: { status: 'done' },
    },
  },
  example: { title: 'Call Ada back', type: 'call', priority: 'high', due_at: '2026-02-02T09:00:00.000Z' },
}
