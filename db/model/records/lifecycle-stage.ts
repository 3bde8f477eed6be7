import type { Field } from './kind.ts'

export const lifecycle_stage: Field = {
  type: 'enum',
  values: ['subscriber', 'lead', 'mql', 'sql', 'opportunity', 'customer', 'evangelist', 'other'],
  description: 'The stage in the customer lifecycle.',
}
