import { bodyOf } from '../../db/incoming/replay-entry.ts'
import { parsedBy } from '../../db/incoming/replays.ts'
import { findSamples, type Sample } from '../../db/incoming/samples.ts'
import { AppError } from '../../db/model/errors.ts'
import { type Missing, missingIn } from '../../db/model/incoming/unlike-sample.ts'
import type { Finding, OutsideReferences, PayloadReference } from '../../workflows/language/definition.ts'
import { meantBy, writeInstead } from '../../workflows/language/problems.ts'
import { pathText } from '../../workflows/language/reference-hints.ts'
import { logScopesOf } from '../app/incoming-webhook-rules.ts'
import type { RouteRequest } from '../http/route.ts'
import { allows } from '../http/scopes.ts'

type SampleRequest = Pick<RouteRequest, 'caller' | 'deps' | 'tenant'>

/**
 * Warnings about values of `trigger.payload` that no captured sample has of the webhooks that start the workflow: by its
 * id, or for a spec that is not saved by its name. The names of a payload are shown only to those who may read the log.
 */
export async function unlikeSamples(
  request: SampleRequest,
  { payload }: Pick<OutsideReferences, 'payload'>,
  workflow: string = payload.workflow,
): Promise<Finding[]> {
  if (payload.reads.length === 0) return []
  const { scopes } = request.caller
  const { workflowIds, samples } = await request.tenant((tx) =>
    findSamples(tx, workflow, (webhook) =>
      (['webhooks:read', ...logScopesOf(webhook)] as const).every((scope) => allows(scopes, scope)),
    ),
  )
  const read = await Promise.all(samples.map((sample) => readSample(request, sample, workflowIds)))
  const known = read.filter((one) => one !== undefined)
  if (known.length === 0) return []
  return payload.reads.flatMap((reference): Finding[] => {
    const missing = known.map(({ name, payload }) => ({ name, found: missingIn(payload, reference.keys) }))
    const [first] = missing
    if (!first?.found || !missing.every(({ found }) => found)) return []
    return [findingOf(reference, first.name, first.found)]
  })
}

/** The payload that the runs of a sample read; undefined if the sample does not start these workflows. */
async function readSample(
  { caller, deps }: SampleRequest,
  { webhook, entry }: Sample,
  workflowIds: string[],
): Promise<{ name: string; payload: unknown } | undefined> {
  const { id } = caller.organization
  const body = bodyOf(id, entry, deps.secretsKey)
  const parsed = await parsedBy((...values) => deps.compute.mapBody(...values), id, body, webhook)
  if (parsed instanceof AppError) return undefined
  const { payload, hidden, mapped } = parsed
  const listening = (mapped.listeners ?? []).map((place) => webhook.listeners[place]?.workflow_id)
  if (![webhook.workflow_id, ...listening].some((one) => one && workflowIds.includes(one))) return undefined
  return { name: webhook.name, payload: hidden?.payload ?? payload }
}

/** Names that a hint lists. */
const MOST = 20

function findingOf(
  { keys, ...place }: PayloadReference,
  webhook: string,
  { before, key, what, names, isList }: Missing,
): Finding {
  const at = ['trigger', 'payload', ...before]
  const meant = meantBy(String(key), names)
  const rest = keys.slice(before.length + 1)
  const hint =
    meant !== undefined
      ? writeInstead(
          pathText([...at, ...(isList ? [0] : []), meant, ...rest]),
          pathText(['trigger', 'payload', ...keys]),
        )
      : isList
        ? `read one of its items, such as ${pathText([...at, 0])}, or all of them with a loop`
        : names.length > 0
          ? `one of ${names.slice(0, MOST).join(', ')}${names.length > MOST ? ', …' : ''}; or add a default, if other requests have it`
          : 'add a default, or capture another sample: POST /v1/webhooks/incoming/{webhook_id}/capture, with the scope webhooks:write'
  return {
    code: 'unlike_sample',
    message: `the sample of the webhook ${JSON.stringify(webhook)} has no ${pathText([...at, key])}${what ? `: ${pathText(at)} is ${what}` : ''}`,
    hint,
    ...place,
  }
}
