import { z } from 'zod'
import {
  countIneffective,
  getEntry,
  MAX_REPLAY,
  type Period,
  REPLAY_INCLUDES,
  readEntries,
} from '../../db/incoming/replay-entries.ts'
import { bodyOf, previewEntry } from '../../db/incoming/replay-entry.ts'
import {
  createReplay,
  getReplay,
  type MapBody,
  parsedBy,
  previewReplay,
  type Replay,
  replayOne,
  setReplayStatus,
} from '../../db/incoming/replays.ts'
import { withSensitiveTargets } from '../../db/incoming/sensitive-targets.ts'
import { getIncomingWebhook } from '../../db/incoming/webhooks.ts'
import { leastRole } from '../../db/model/access/roles.ts'
import type { FieldMapping } from '../../db/model/incoming/types.ts'
import { REPLAY_STATUSES } from '../../db/model/replays/statuses.ts'
import { type AppRoute, appRoute, type RouteRequest } from '../http/route.ts'
import { outcomeSchema, previewSchema as previewOfEntry } from './incoming-outcome-schema.ts'
import { assertMapping, scopesOf } from './incoming-webhook-rules.ts'
import { params } from './incoming-webhook-schemas.ts'
import { fieldMapping } from './mapping-schema.ts'
import { periodOf } from './replay-period.ts'
import { replayRoutes } from './replay-routes.ts'

const tag = 'Incoming webhooks'

/** Maximum number of entries whose differences a dry run shows. */
const EXAMPLES = 10

const time = z.iso.datetime({ offset: true })
const replayBody = z
  .strictObject({
    log_id: z.uuid().toLowerCase().optional().meta({ description: 'One log entry. Not with `since`.' }),
    since: time.optional().meta({ description: 'Requests received at or after this time.' }),
    until: time.optional().meta({ description: 'Requests received before this time. Default: now.' }),
    include: z.array(z.enum(REPLAY_INCLUDES)).min(1).default(['failed', 'blocked']).meta({
      description:
        '`failed`: verified requests that were refused for their payload or an error. `blocked`: verified requests over the rate limit or the quota. `succeeded`: requests that created or updated a record, or started workflows without one.',
    }),
    field_mapping: fieldMapping
      .optional()
      .meta({ description: 'A draft mapping for this replay. Default: the one of the webhook.' }),
    dry_run: z.boolean().default(false).meta({ description: 'Only returns the differences.' }),
  })
  .refine((body) => (body.log_id === undefined) !== (body.since === undefined), {
    path: ['since'],
    message:
      'give either log_id, for one log entry, or since, for all from a time on: not both, and not none',
  })
  .meta({ id: 'IncomingReplayCreate' })

const shared = {
  webhook_id: z.uuid(),
  log_id: z.uuid().nullable(),
  include: z.array(z.enum(REPLAY_INCLUDES)),
  since: z.iso.datetime().nullable(),
  until: z.iso.datetime().nullable(),
  total: z.int().meta({ description: 'The number of matching log entries.' }),
}

const replaySchema = z
  .object({
    object: z.literal('incoming_replay'),
    id: z.uuid(),
    ...shared,
    field_mapping: fieldMapping.nullable(),
    status: z.enum(REPLAY_STATUSES),
    problem: z.string().nullable().meta({ description: 'The reason why it was paused.' }),
    created: z.int(),
    updated: z.int(),
    triggered: z.int().meta({ description: 'Those without a record that started workflows again.' }),
    skipped: z.int(),
    failed: z.int(),
    created_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
    result: outcomeSchema.optional().meta({ description: 'For the replay of one log entry: its result.' }),
  })
  .meta({ id: 'IncomingReplay' })

const previewSchema = z
  .object({
    object: z.literal('incoming_replay_preview'),
    dry_run: z.literal(true),
    ...shared,
    skipped: z.int().meta({
      description:
        'The number of entries of `total` that would be skipped, because an equal request was accepted or is replayed before them.',
    }),
    incomplete: z.int().meta({
      description:
        'The number of verified entries that are not in `total`, because only the beginning of their payload is stored: see `replay_problem` of the log.',
    }),
    examples: z
      .array(previewOfEntry.extend({ log_id: z.uuid() }))
      .meta({ description: `The predicted result of the first ${EXAMPLES} entries, each on its own.` }),
  })
  .meta({ id: 'IncomingReplayPreview' })

type Request = RouteRequest<z.output<typeof params>, unknown, z.output<typeof replayBody>>

/** Replays of incoming webhooks: they process stored requests again, with the current mapping or a draft. */
export const incomingReplayRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/webhooks/incoming/{webhook_id}/replays',
    role: leastRole('webhooks:write'),
    id: 'createIncomingReplay',
    tag,
    summary: 'Replay requests',
    description: `Repeats one log entry at once, or those of a period in the background, at most ${MAX_REPLAY}, oldest first. Each is
logged. What had its effect is not repeated: a request whose equal was accepted, by its delivery id or as a later request with the
same body, is skipped; of a request that created or updated a record this record is updated, and neither a note nor a run of the
workflow is added; without records, the workflows are started again. A request that was over the quota counts in it now. One replay of a webhook at a time. With \`dry_run\` the
response only shows what would change.`,
    params,
    body: replayBody,
    example: { since: '2026-01-01T00:00:00.000Z' },
    response: { status: 201, schema: replaySchema, preview: previewSchema },
    handler: (request) => (request.body.log_id === undefined ? replayPeriod(request) : replayEntry(request)),
  }),
  ...replayRoutes<Replay>({
    webhooks: '/webhooks/incoming',
    tag,
    name: 'IncomingReplay',
    noun: 'a replay of requests',
    schema: replaySchema,
    descriptions: {
      get: 'Its progress. The log has an entry for each request: filter it by `replay_id`. Replays are kept as long as the log.',
      pause: 'Replays no further entry until it is resumed.',
      resume: 'Continues a paused replay.',
      stop: 'Replays no further entry. What was written so far stays.',
    },
    getReplay,
    setReplayStatus,
    present: (replay) => present(replay),
  }),
]

async function replayPeriod(request: Request) {
  const { body, params, tenant, asPreview } = request
  const { webhook_id } = params
  const draft = body.field_mapping ?? null
  await webhookWith(request, draft)
  const period: Period = { include: body.include, ...periodOf({ since: body.since!, until: body.until }) }
  if (!body.dry_run)
    return tenant(async (tx) =>
      present(await getReplay(tx, webhook_id, await createReplay(tx, webhook_id, period, draft))),
    )
  asPreview()
  const { ids, ...counts } = await tenant(async (tx) => ({
    total: await previewReplay(tx, webhook_id, period),
    ...(await countIneffective(tx, webhook_id, period)),
    ids: await readEntries(tx, webhook_id, period, null, EXAMPLES),
  }))
  return preview(request, { log_id: null, ...period, ...counts }, ids)
}

async function replayEntry(request: Request) {
  const { body, params, tenant, asPreview, caller, deps } = request
  const { log_id: logId, field_mapping: draft = null, dry_run } = body
  if (dry_run) {
    asPreview()
    const entry = { log_id: logId!, include: [], since: null, until: null, total: 1, incomplete: 0 }
    const shown = await preview(request, entry, [logId!])
    return { ...shown, skipped: shown.examples.filter(({ outcome }) => outcome === 'skipped').length }
  }
  const webhook = await webhookWith(request, draft)
  const entry = await tenant((tx) => getEntry(tx, params.webhook_id, logId!))
  const { id: organizationId } = caller.organization
  const stored = bodyOf(organizationId, entry, deps.secretsKey)
  const parsed = await parsedBy(mapper(request), organizationId, stored, webhook)
  return tenant(async (tx) => {
    const { id, outcome } = await replayOne(tx, webhook, logId!, parsed, draft)
    return { ...present(await getReplay(tx, webhook.id, id)), result: outcome }
  })
}

async function preview(request: Request, shown: object, ids: string[]) {
  const { params, body, tenant, caller, deps } = request
  const { id: organizationId } = caller.organization
  const webhook = await webhookWith(request, body.field_mapping ?? null)
  const examples = []
  for (const id of ids) {
    const entry = await tenant((tx) => getEntry(tx, params.webhook_id, id))
    const stored = bodyOf(organizationId, entry, deps.secretsKey)
    const parsed = await parsedBy(mapper(request), organizationId, stored, webhook)
    const outcome = await tenant((tx) => previewEntry(tx, webhook, entry, parsed))
    examples.push({ log_id: id, ...outcome })
  }
  return { object: 'incoming_replay_preview', dry_run: true, webhook_id: webhook.id, ...shown, examples }
}

/** The webhook, with the draft mapping if there is one, which may write more. */
async function webhookWith({ params, tenant, requireScopes }: Request, draft: FieldMapping | null) {
  const webhook = await tenant(async (tx) =>
    withSensitiveTargets(tx, await getIncomingWebhook(tx, params.webhook_id)),
  )
  const drafted = { ...webhook, field_mapping: draft ?? webhook.field_mapping }
  assertMapping(drafted)
  requireScopes(scopesOf(drafted))
  return drafted
}

const mapper =
  ({ deps }: Request): MapBody =>
  (organizationId, body, mapping) =>
    deps.compute.mapBody(organizationId, body, mapping)

const present = (replay: Replay) => ({ object: 'incoming_replay' as const, ...replay })
