import { z } from 'zod'
import { RUN_TRIGGERS } from '../../workflows/interpret/run-state.ts'
import { RUN_STATUSES } from '../../workflows/shared/statuses.ts'
import { period } from '../http/list-query.ts'

/**
 * The filters of lists and batches of runs; a run must match all of them. `status` and `workflow_version` differ between
 * the two.
 */
export const runFilter = {
  workflow_id: z.uuid().optional().describe('Runs of this workflow.'),
  record_id: z.uuid().optional().describe('Runs that an event of this record started.'),
  parent_run_id: z.uuid().optional().describe('Runs that a node of this run started.'),
  retry_of: z.uuid().optional().describe('Retries of this run.'),
  trigger: z.enum(RUN_TRIGGERS).optional().describe('Runs with this type of trigger.'),
  ...period,
  q: z
    .string()
    .trim()
    .min(3, 'must have at least 3 characters')
    .max(200)
    .optional()
    .describe(
      "A part of the workflow's name or of the error message. Only the newest 1,000 matching errors are considered.",
    ),
}

export const LATE =
  'Whether the run was open for longer than the `expected_within` of its workflow; it may have ended.'

/** The greatest integer of PostgreSQL. */
export const MAX_VERSION = 2_147_483_647

export const OF_VERSION =
  'Runs that have this version of their workflow now, with `workflow_id` to name the workflow.'

export const runStatus = z.enum(RUN_STATUSES)

const parts = (text: string) => text.split(',').map((part) => part.trim())

/** Comma-separated statuses: `status=failed,terminated`. */
export const statusList = z
  .string()
  .refine(
    (text) => parts(text).every((part) => runStatus.safeParse(part).success),
    `must be one or several of ${RUN_STATUSES.join(', ')}, separated by commas`,
  )
  .transform((text) => [...new Set(parts(text).map((part) => runStatus.parse(part)))].sort())
  .describe(`Runs with one of these statuses, separated by commas: ${RUN_STATUSES.join(', ')}.`)
  .meta({ example: 'failed,terminated' })
