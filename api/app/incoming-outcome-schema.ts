import { z } from 'zod'
import { WRITES } from '../../db/model/incoming/types.ts'

/** The effects of a payload. */
export const outcomeSchema = z
  .object({
    outcome: z.enum([...WRITES, 'failed']),
    message: z.string(),
    error: z.string().nullable(),
    details: z.record(z.string(), z.string()).meta({ description: 'For a failure: the reasons, by field.' }),
    record_id: z.uuid().nullable(),
    run_id: z.uuid().nullable(),
    warnings: z.array(z.string()),
    mapped_data: z.unknown(),
  })
  .meta({ id: 'IncomingPayloadOutcome' })

/** The predicted effects of a payload. */
export const previewSchema = outcomeSchema.omit({ run_id: true }).extend({
  changes: z
    .record(z.string(), z.object({ from: z.unknown(), to: z.unknown() }))
    .meta({ description: 'The fields of the record that would change, as in its history.' }),
  starts_workflow: z.boolean(),
})
