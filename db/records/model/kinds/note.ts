import type { KindDefinition } from '../kind.ts'

export const note: KindDefinition = {
  description: 'A text that belongs to other records.',
  upsertKeys: [],
  fields: {
    title: { type: 'text', description: 'A heading.' },
    body: { type: 'text', required: true, max: 65_536, description: 'What it says.' },
    format: {
      type: 'enum',
      values: ['text', 'markdown'],
      default: 'text',
      description: 'How the body is written.',
    },
    pinned: { type: 'boolean', default: false, description: 'Kept on top.' },
    author_id: { type: 'user', description: 'Who wrote it; the acting user where it is left out.' },
  },
  derive({ next, before, actor }) {
    const unsigned = !before && next.author_id == null && actor.type === 'user'
    return unsigned ? { author_id: actor.id } : {}
  },
  example: { title: 'First call', body: 'Wants the engine by **March**.', format: 'markdown' },
}
