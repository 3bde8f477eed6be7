import { z } from 'zod'
import { leastRole } from '../../db/model/access/roles.ts'
import type { ReplayStatus } from '../../db/model/replays/statuses.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { type AppRoute, appRoute } from '../http/route.ts'

const params = z.object({ webhook_id: z.uuid(), replay_id: z.uuid() })

const STATUS_OF = { pause: 'paused', resume: 'running', stop: 'stopped' } as const
type Verb = keyof typeof STATUS_OF

interface Replays<Replay> {
  /** The path of the webhooks. */
  webhooks: '/webhooks/incoming' | '/webhooks/outgoing'
  tag: string
  /** Prefix of the operation ids: `get<name>`, `pause<name>`. */
  name: string
  /** The noun in the summaries. */
  noun: string
  schema: z.ZodType
  descriptions: Record<'get' | Verb, string>
  getReplay(tx: Tenant, webhookId: string, id: string): Promise<Replay>
  setReplayStatus(
    tx: Tenant,
    webhookId: string,
    id: string,
    status: Exclude<ReplayStatus, 'completed'>,
  ): Promise<Replay>
  present(replay: Replay): object
}

/** The routes of a created replay: its progress, pause, resume and stop. */
export function replayRoutes<Replay>(replays: Replays<Replay>): AppRoute[] {
  const { webhooks, tag, name, noun, schema, descriptions, present } = replays
  const path = `${webhooks}/{webhook_id}/replays/{replay_id}` as const
  const response = { status: 200 as const, schema }
  const changes = (['pause', 'resume', 'stop'] as const).map((verb) =>
    appRoute({
      method: 'POST',
      path: `${path}/${verb}`,
      role: leastRole('webhooks:write'),
      id: `${verb}${name}`,
      tag,
      summary: `${verb[0]!.toUpperCase()}${verb.slice(1)} ${noun}`,
      description: descriptions[verb],
      params,
      response,
      handler: ({ params: { webhook_id, replay_id }, tenant }) =>
        tenant(async (tx) =>
          present(await replays.setReplayStatus(tx, webhook_id, replay_id, STATUS_OF[verb])),
        ),
    }),
  )
  return [
    appRoute({
      method: 'GET',
      path,
      role: leastRole('webhooks:read'),
      id: `get${name}`,
      tag,
      summary: `Retrieve ${noun}`,
      description: descriptions.get,
      params,
      response,
      handler: ({ params: { webhook_id, replay_id }, tenant }) =>
        tenant(async (tx) => present(await replays.getReplay(tx, webhook_id, replay_id))),
    }),
    ...changes,
  ]
}
