import type { KindDefinition } from '../kind.ts'

export const note: KindDefinition = {
  description: 'A note about other records.',
  upsertKeys: [],
  fields: {
    title: { type: 'text', description: 'The title of the note.' },
    body: { type: 'text', required: true, max: 65_536, description: 'The text of the note.' },
    format: {
      type: 'enum',
      values: ['text', 'markdown'],
      default: 'text',
      description: 'The format of the body.',
    },
    pinned: { type: 'boolean', default: false, description: 'Whether the note is pinned.' },
    author_id: { type: 'user', description: 'The author. Default: the user who creates the note.' },
  },
  derive({ next, before, actor }) {
    const unsigned = !before && next.author_id == null && actor.type === 'user'
    return unsigned ? { author_id: actor.id } : {}
  },
  columns: ['body', 'pinned', 'author_id', 'created_at'],
  dimensions: ['format', 'author_id'],
  synonyms: {
    title: 'subject',
    body: 'notes notebody content description',
  },
  example: { title: 'First call', body: 'Wants the engine by **March**.', format: 'markdown' },
}
