import { z } from 'zod'
import { PLANS } from '../../db/access/plans.ts'
import { getUsage } from '../../db/access/usage.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const limit = z.int().nullable().meta({ description: 'Null: unlimited.' })
const used = z.object({ used: z.int(), limit }).meta({ id: 'Used' })

export const usageRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/usage',
    role: 'member',
    id: 'getUsage',
    tag: 'Organization',
    summary: 'Retrieve the usage of the plan',
    description:
      'The webhooks, and the verified requests to incoming webhooks in this calendar month (UTC), beside the limits of the plan.',
    response: {
      status: 200,
      schema: z
        .object({
          object: z.literal('usage'),
          plan: z.enum(PLANS),
          month: z.object({ from: z.iso.datetime(), to: z.iso.datetime() }),
          incoming: z.object({
            webhooks: used,
            requests: used,
            per_minute: limit.meta({ description: 'Of one webhook, including the burst. Null: unlimited.' }),
          }),
          outgoing: z.object({ webhooks: used }),
        })
        .meta({ id: 'Usage' }),
    },
    handler: async ({ tenant }) => ({ object: 'usage', ...(await tenant(getUsage)) }),
  }),
]
