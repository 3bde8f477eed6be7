import type { Field } from './kind.ts'

/** Products and line items have the same. */
export const recurring_interval: Field = {
  type: 'enum',
  values: ['week', 'month', 'quarter', 'half_year', 'year'],
  description: 'How often it is charged. null: once. An amount is that of one interval.',
}
