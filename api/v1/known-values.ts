import { bodyOf } from '../../db/incoming/replay-entry.ts'
import { parsedBy } from '../../db/incoming/replays.ts'
import { findSamples, idsOf, type Sample } from '../../db/incoming/samples.ts'
import { AppError } from '../../db/model/errors.ts'
import { findDefinitions } from '../../db/workflows/list.ts'
import { listSamples } from '../../db/workflows/samples.ts'
import type { KnownValues } from '../../workflows/authoring/known-values.ts'
import type { OutsideReferences } from '../../workflows/language/definition.ts'
import { logScopesOf } from '../app/incoming-webhook-rules.ts'
import type { Source } from '../compute/tasks.ts'
import type { RouteRequest } from '../http/route.ts'
import { allows } from '../http/scopes.ts'

export type Author = Pick<RouteRequest, 'caller' | 'deps' | 'tenant'>

/**
 * Validates a source: first what it tells itself, then with what the organization has of the values that it reads.
 * `workflow`: the id of the workflow that it is a version of; a new one is found by its name, as its webhooks would.
 */
export async function validated(request: Author, source: Source, workflow?: string) {
  const { caller, deps } = request
  const { id } = caller.organization
  const first = await deps.compute.validate(id, source)
  const known = await knownValues(request, first.references, workflow)
  return known ? deps.compute.validate(id, { ...source, known }) : first
}

/** Called workflows whose outputs are typed. */
const MOST_CALLED = 20

/** Undefined if there is nothing that tells more than the definition. */
async function knownValues(
  { caller, deps, tenant }: Author,
  { sampled, workflows }: OutsideReferences,
  workflow = sampled.name,
): Promise<KnownValues | undefined> {
  // It could not be read at all.
  if (sampled.nodes.length === 0) return undefined
  const mayRead = (...scopes: Parameters<typeof allows>[1][]) =>
    scopes.every((scope) => allows(caller.scopes, scope))
  const names = [...new Set(workflows.map((one) => one.workflow))].slice(0, MOST_CALLED)
  const found = await tenant(async (tx) => {
    const ids = await idsOf(tx, workflow)
    const [newest] = ids
    return {
      ids,
      samples: sampled.byWebhooks
        ? await findSamples(tx, ids, (webhook) => mayRead('webhooks:read', ...logScopesOf(webhook)))
        : [],
      pinned: newest && mayRead('workflows:run') ? await listSamples(tx, newest) : [],
      called: await findDefinitions(tx, names),
    }
  })
  const payloads = await Promise.all(
    found.samples.map((sample) => readSample({ caller, deps }, sample, found.ids)),
  )
  const pinned = found.pinned.filter(({ node_id }) => sampled.nodes.includes(node_id))
  const known = {
    payloads: payloads.filter((one) => one !== undefined),
    outputs: Object.fromEntries(pinned.map(({ node_id, output }) => [node_id, output])),
    workflows: found.called,
  }
  const isEmpty = Object.values(known).every((values) => Object.keys(values).length === 0)
  return isEmpty ? undefined : known
}

/**
 * The payload that the runs of a sample read, with secret fields masked; undefined if the sample does not start these
 * workflows.
 */
async function readSample(
  { caller, deps }: Pick<Author, 'caller' | 'deps'>,
  { webhook, entry }: Sample,
  workflowIds: string[],
): Promise<KnownValues['payloads'][number] | undefined> {
  const { id } = caller.organization
  const body = bodyOf(id, entry, deps.secretsKey)
  const parsed = await parsedBy((...values) => deps.compute.mapBody(...values), id, body, webhook)
  if (parsed instanceof AppError) return undefined
  const { payload, hidden, mapped } = parsed
  const listening = (mapped.listeners ?? []).map((place) => webhook.listeners[place]?.workflow_id)
  if (![webhook.workflow_id, ...listening].some((one) => one && workflowIds.includes(one))) return undefined
  return { webhook: webhook.name, payload: hidden?.payload ?? payload }
}
