import { z } from 'zod'
import { PLANS } from '../../db/access/plans.ts'
import { COUNTED_LIMITS, getUsage } from '../../db/access/usage.ts'
import { STORED_KINDS } from '../../db/model/storage/tables.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const counted = z.object({
  used: z.int().nullable().meta({
    description: 'null: not counted, because the plan sets no limit or the limit is per file.',
  }),
  limit: z.int().nullable().meta({ description: 'null: the plan sets no limit.' }),
})

const usage = z
  .object({
    object: z.literal('usage'),
    plan: z.enum(PLANS),
    month: z
      .object({ from: z.iso.datetime(), to: z.iso.datetime() })
      .meta({ description: 'The month (UTC) that the limits `…_per_month` count; `to` is exclusive.' }),
    limits: z
      .object(
        Object.fromEntries(COUNTED_LIMITS.map((name) => [name, counted])) as Record<
          (typeof COUNTED_LIMITS)[number],
          typeof counted
        >,
      )
      .meta({
        description:
          'By name: verified requests to incoming webhooks, deliveries to outgoing webhooks (retries do not count), webhooks, active runs, the requests of this minute to the busiest incoming webhook, the requests of this minute to `/v1` (with what processes hold in reserve), the bytes of all files (each counts with at least 4,096), and the bytes of one file.',
      }),
    storage: z
      .object({
        used: z.int().meta({ description: 'The last measurement, plus what was written since.' }),
        limit: z.int().nullable().meta({ description: 'null: the plan sets none.' }),
        measured: z.partialRecord(z.enum(STORED_KINDS), z.int()).meta({
          description:
            'The last measurement by kind, with the rows themselves and a share of their indexes. `files`: the files of imports and exports, and the rows of others, whose contents count in `file_bytes`; `logs`: events, deliveries, requests of webhooks, the audit log.',
        }),
        measured_at: z.iso.datetime().nullable(),
      })
      .meta({
        description:
          'The bytes that the organization stores. At the limit, writes that store more are refused with `quota_exceeded`; deletions are not, and count within a minute or two.',
      }),
    held_for_quota: z.int().meta({
      description:
        'The number of deliveries held for the quota (`held_for: "quota"`). They are sent within minutes after the month or the plan has changed.',
    }),
  })
  .meta({ id: 'Usage' })

export const usageRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/usage',
    role: 'member',
    id: 'getUsage',
    tag: 'Organization',
    summary: 'Retrieve the usage',
    description: 'Returns the usage of the organization, and the limits of its plan.',
    response: { status: 200, schema: usage },
    handler: async ({ tenant }) => ({ object: 'usage', ...(await tenant(getUsage)) }),
  }),
]
