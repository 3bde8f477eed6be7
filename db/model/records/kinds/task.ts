import type { KindDefinition } from '../kind.ts'

export const task: KindDefinition = {
  description: 'A task of a user.',
  upsertKeys: [],
  fields: {
    title: { type: 'text', required: true, description: 'The title of the task.' },
    body: { type: 'text', max: 10_000, description: 'Details of the task.' },
    status: {
      type: 'enum',
      values: ['todo', 'in_progress', 'waiting', 'done', 'cancelled'],
      default: 'todo',
      description: 'The status of the task.',
    },
    priority: {
      type: 'enum',
      values: ['low', 'medium', 'high', 'urgent'],
      default: 'medium',
      description: 'The priority of the task.',
    },
    type: {
      type: 'enum',
      values: ['todo', 'call', 'email', 'meeting'],
      default: 'todo',
      description: 'The type of the task.',
    },
    due_at: { type: 'datetime', sorted: true, description: 'The due time.' },
    reminder_at: { type: 'datetime', description: 'When `task.reminder` is raised, while the task is open.' },
    completed_at: { type: 'datetime', readOnly: true, description: 'The time of completion.' },
    assignee_id: { type: 'user', description: 'The assigned user.' },
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
  columns: ['status', 'priority', 'due_at', 'assignee_id', 'created_at'],
  dimensions: ['status', 'priority', 'type', 'assignee_id'],
  synonyms: {
    title: 'title tasktitle taskname name subject summary task todo',
    body: 'body description taskdescription details notes note message content comment notebody',
    status: 'status taskstatus',
    priority: 'priority taskpriority urgency',
    type: 'tasktype',
    due_at: 'dueat duedate due deadline',
    reminder_at: 'reminderat reminder',
    tags: 'tags tag labels',
    external_id: 'externalid',
  },
  example: { title: 'Call Ada back', type: 'call', priority: 'high', due_at: '2026-02-02T09:00:00.000Z' },
}
