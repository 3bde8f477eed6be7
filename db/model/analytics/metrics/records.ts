import { kindNames } from '../../../../workflows/shared/record-kinds.ts'
import type { Metric } from '../metric.ts'
import { RECORDS } from '../sources.ts'

/** The number of created records of each kind. */
export const RECORD_METRICS: Metric[] = kindNames.map((kind) => ({
  name: `${kind}.created`,
  subject: 'records',
  unit: 'count',
  description: `The ${kind} that were created in the period, without those that were deleted since.`,
  source: RECORDS[kind],
  time: 'created_at',
  measure: { type: 'count' },
}))
