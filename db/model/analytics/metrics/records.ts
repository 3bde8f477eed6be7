import { kindNames } from '../../../../workflows/shared/record-kinds.ts'
import type { Metric } from '../metric.ts'
import { RECORDS } from '../sources.ts'

/** The number of created records of each kind. */
export const RECORD_METRICS: Metric[] = kindNames.map((entity) => ({
  name: `${entity}.created`,
  subject: 'records',
  unit: 'count',
  description: `The ${entity} that were created in the period, without those that were deleted since.`,
  source: RECORDS[entity],
  time: 'created_at',
  measure: { type: 'count' },
}))
