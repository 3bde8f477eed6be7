import { z } from 'zod'
import { DECISIONS } from '../../workflows/nodes/wait-for.ts'

/** Maximum length of a comment, in characters. */
export const MAX_COMMENT = 5_000

const time = z.iso.datetime()

/** An approval, as the link and the API return it. */
export const approvalShape = z
  .object({
    object: z.literal('approval'),
    id: z.uuid().describe('The approval.'),
    run_id: z.uuid(),
    node_id: z.string(),
    workflow_id: z.uuid(),
    workflow_name: z.string(),
    title: z.string(),
    message: z.string().nullable(),
    assignees: z.array(z.string()).describe('The user ids or email addresses of the assignees.'),
    status: z.enum(['waiting', ...DECISIONS]),
    comment: z.string().nullable(),
    answered_by: z
      .object({
        type: z.string(),
        id: z.string().nullable(),
        shown_to: z
          .object({ type: z.string(), id: z.string() })
          .optional()
          .describe('For a link that the API showed: the key or user that got it.'),
      })
      .nullable(),
    answered_at: time.nullable(),
    requested_at: time,
    expires_at: time.nullable(),
  })
  .meta({ id: 'Approval' })

export const decisionShape = z.strictObject({
  decision: z.enum(DECISIONS),
  comment: z.string().max(MAX_COMMENT).nullish(),
})
