import { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import { REPLAY_STATUSES } from '../../db/model/replays/statuses.ts'
import { MAX_REPLAY, type Period, REPLAY_INCLUDES } from '../../db/outgoing/replay-candidates.ts'
import {
  createReplay,
  getReplay,
  previewReplay,
  type Replay,
  setReplayStatus,
} from '../../db/outgoing/replays.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { params } from './outgoing-webhook-schemas.ts'
import { periodOf } from './replay-period.ts'
import { replayRoutes } from './replay-routes.ts'

const tag = 'Deliveries'

const replayBody = z
  .strictObject({
    since: z.iso.datetime({ offset: true }).meta({ description: 'Events raised at or after this time.' }),
    until: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'Events raised before this time. Default: now.' }),
    include: z
      .array(z.enum(REPLAY_INCLUDES))
      .min(1)
      .default([...REPLAY_INCLUDES])
      .meta({
        description:
          '`failed`: events whose last delivery to the webhook failed. `missed`: events that the webhook selects now and of which it has no delivery.',
      }),
    dry_run: z.boolean().default(false).meta({ description: 'Only counts the events.' }),
  })
  .meta({ id: 'ReplayCreate' })

const shared = {
  webhook_id: z.uuid(),
  include: z.array(z.enum(REPLAY_INCLUDES)),
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  total: z.int().meta({
    description: 'The number of matching events, including those that the condition of the webhook excludes.',
  }),
}

const replaySchema = z
  .object({
    object: z.literal('replay'),
    id: z.uuid(),
    ...shared,
    status: z.enum(REPLAY_STATUSES),
    created: z.int().meta({ description: 'The number of deliveries created so far.' }),
    skipped: z
      .int()
      .meta({ description: 'The number of events that the condition of the webhook excludes.' }),
    created_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Replay' })

const previewSchema = z
  .object({ object: z.literal('replay_preview'), dry_run: z.literal(true), ...shared })
  .meta({ id: 'ReplayPreview' })

/** Replays of outgoing webhooks: they send again the failed and missed deliveries of a period. */
export const outgoingReplayRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/webhooks/outgoing/{webhook_id}/replays',
    role: leastRole('webhooks:write'),
    id: 'createReplay',
    tag,
    summary: 'Replay events',
    description: `Sends the failed or missed events of a period, at most ${MAX_REPLAY}, oldest first, each as a new delivery. The
deliveries are created in the background, no faster than the webhook accepts them; they count against the quota. One replay of a
webhook at a time. With \`dry_run\` the response only has the number of events.`,
    params,
    body: replayBody,
    example: { since: '2026-01-01T00:00:00.000Z' },
    response: { status: 201, schema: replaySchema, preview: previewSchema },
    handler: ({ params: { webhook_id }, body, tenant, asPreview }) =>
      tenant(async (tx) => {
        const period: Period = { include: body.include, ...periodOf(body) }
        if (!body.dry_run)
          return present(await getReplay(tx, webhook_id, await createReplay(tx, webhook_id, period)))
        asPreview()
        const total = await previewReplay(tx, webhook_id, period)
        return { object: 'replay_preview', dry_run: true, webhook_id, ...period, total }
      }),
  }),
  ...replayRoutes<Replay>({
    webhooks: '/webhooks/outgoing',
    tag,
    name: 'Replay',
    noun: 'a replay',
    schema: replaySchema,
    descriptions: {
      get: 'Its progress. Replays are kept as long as deliveries.',
      pause: 'Creates no further deliveries until it is resumed.',
      resume: 'Continues a paused replay after its last delivery.',
      stop: 'Creates no further deliveries. Those so far are sent.',
    },
    getReplay,
    setReplayStatus,
    present: (replay) => present(replay),
  }),
]

const present = (replay: Replay) => ({ object: 'replay' as const, ...replay })
