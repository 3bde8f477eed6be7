import type { Field, FieldType } from './kind.ts'

/** The types that only fields of every kind have, beside those of a kind's own fields. */
export type CommonType = FieldType | 'tags' | 'custom_fields' | 'actor'

export interface CommonField extends Omit<Field, 'type'> {
  type: CommonType
  /** Whether free-text search finds it; of a kind's own fields the type says so. */
  searchable?: true
}

/** The fields that every kind has, apart from `object`. */
export const commonFields = {
  id: { type: 'id', readOnly: true, description: 'UUIDv7, made by the service.' },
  external_id: {
    type: 'text',
    description: 'Your own id; unique in the organization and kind.',
    searchable: true,
  },
  owner_id: { type: 'user', description: 'The user who looks after it.' },
  tags: { type: 'tags', default: [], description: 'Labels, each once.', searchable: true },
  custom_fields: {
    type: 'custom_fields',
    default: {},
    description: 'Fields of your own, by name; as filter and sort field `custom_fields.<name>`.',
    searchable: true,
  },
  version: { type: 'integer', readOnly: true, description: 'Counts the changes, from 1.' },
  created_at: { type: 'datetime', readOnly: true, description: 'When it was created.' },
  updated_at: { type: 'datetime', readOnly: true, description: 'When it was last changed.' },
  created_by: { type: 'actor', readOnly: true, description: 'Who created it.' },
  updated_by: { type: 'actor', readOnly: true, description: 'Who changed it last.' },
} as const satisfies Record<string, CommonField>

/** What only the service writes, of every kind. */
export const READ_ONLY: string[] = [
  'object',
  ...Object.entries(commonFields).flatMap(([name, field]) => ('readOnly' in field ? [name] : [])),
]
