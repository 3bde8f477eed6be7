import { type Pipeline, placed } from '../records/pipelines/pipeline.ts'
import type { RecordInput } from '../records/schemas.ts'
import type { CloseTime, Target } from './targets.ts'

/** The time of a cell, as it is written. */
export interface GivenCloseTime {
  column: string
  type: CloseTime
  time: string
  pipelines: readonly Pipeline[]
}

interface Row {
  fields: RecordInput
  issues: { column: string | null; message: string }[]
  closeTimes?: GivenCloseTime[]
}

/**
 * Puts the times at which a deal was won or lost into the fields of its row. Other systems have one close date, which is
 * expected while the deal is open, or a time for each outcome, of which the one of the other outcome is out of date.
 */
export function closeTimes({ fields, issues, closeTimes = [] }: Row): void {
  for (const { column, type, time, pipelines } of closeTimes) {
    const is = placed(pipelines, fields).stage?.outcome ?? 'open'
    const isClosed = is !== 'open'
    const outcome = OUTCOMES[type]
    if (outcome === undefined) {
      fields.expected_close_date ??= dayOf(time)
      if (isClosed) fields.closed_at ??= time
    } else if (is === outcome) fields.closed_at = time
    else if (!isClosed)
      issues.push({
        column,
        message: `the deal is open: a deal with this time is in a stage that is ${outcome}`,
      })
  }
}

const OUTCOMES = { close_date: undefined, won_at: 'won', lost_at: 'lost' } as const

/** The fields that a column of these sets, for issues. */
export const fieldsOfCloseTime = ({ type }: Target): string[] =>
  Object.hasOwn(OUTCOMES, type) ? ['closed_at', 'expected_close_date'] : []

/** The day as it is written; other text stays unchanged, for the error. */
const dayOf = (time: string): string => /^(\d{4}-\d\d-\d\d)T/.exec(time)?.[1] ?? time
