import { fieldsOf, recorded } from '../../access/audit-log.ts'
import { conflict, type Issue, notFound } from '../../model/errors.ts'
import { requireVersion } from '../../model/lists/version.ts'
import {
  changedPipeline,
  newPipeline,
  nextPipeline,
  type PipelineInput,
  type PipelinePatch,
} from '../../model/records/pipelines/definition.ts'
import { named, type Pipeline, placeIssues } from '../../model/records/pipelines/pipeline.ts'
import { firstPipeline } from '../../model/records/pipelines/presets.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { lockFieldRules } from '../custom-fields/rules.ts'
import { changeDeals, movesTo, movesWithin, type StageMoves } from './moves.ts'

export const MAX_PIPELINES = 20

/** All pipelines, without a lock. */
export async function listPipelines(tx: Tenant): Promise<Pipeline[]> {
  const row = await tx
    .trx('organizations')
    .leftJoin('pipelines', 'organization_id', 'organizations.id')
    .where({ id: tx.organizationId })
    .first<{ created_at: Date; definitions: Pipeline[] | null }>('created_at', 'definitions')
  return row.definitions ?? [firstPipeline(tx.organizationId, row.created_at.toISOString())]
}

/** By its id, or by its name, as deals have it. Throws `not_found`. */
export const getPipeline = async (tx: Tenant, id: string): Promise<Pipeline> =>
  found(await listPipelines(tx), id)

/** The issues of a patch of many deals, whose pipeline or stage no deal could have. */
export async function patchIssues(
  tx: Tenant,
  { pipeline, stage }: Record<string, unknown>,
): Promise<Issue[]> {
  const given = [pipeline, stage].filter((value) => value != null)
  if (given.length === 0 || given.some((value) => typeof value !== 'string')) return []
  const pipelines = await listPipelines(tx)
  const isSomewhere = pipelines.some(({ stages }) => named(stages, String(stage)))
  return pipeline == null && isSomewhere ? [] : placeIssues(pipelines, { pipeline, stage })
}

/** Throws `validation_error`; `conflict` above `MAX_PIPELINES`. */
export async function createPipeline(tx: Tenant, input: PipelineInput): Promise<Pipeline> {
  const before = await lockPipelines(tx)
  if (before.length >= MAX_PIPELINES)
    throw conflict(`an organization has at most ${MAX_PIPELINES} pipelines`, {
      hint: 'delete one that is not used',
    })
  const pipeline = newPipeline(input, before)
  await store(tx, [...(pipeline.is_default ? before.map(withoutDefault) : before), pipeline])
  return recorded(tx, 'pipeline.created', pipeline)
}

/**
 * Changes a pipeline. `moves`: the stage to which the deals of a removed stage go. Deals with the former probability of
 * their stage get the new one. Each deal that changes has a version, a history entry and events. Throws `not_found`,
 * `version_conflict`, `validation_error`; `conflict` if deals are in a removed stage that `moves` does not name, or in
 * one whose outcome changes, or if too many deals would change.
 */
export async function updatePipeline(
  tx: Tenant,
  id: string,
  { moves = {}, ...patch }: PipelinePatch & { moves?: StageMoves | undefined },
  ifVersion?: readonly number[],
): Promise<Pipeline> {
  const pipelines = await lockPipelines(tx)
  const before = found(pipelines, id)
  requireVersion('pipeline', before.version, ifVersion)
  const others = pipelines.filter((one) => one !== before)
  const after = changedPipeline(before, patch, others)
  const changes = await movesWithin(tx, before, after ?? before, moves)
  if (!after) return before
  const isNewDefault = after.is_default && !before.is_default
  await store(
    tx,
    pipelines.map((one) => (one === before ? after : isNewDefault ? withoutDefault(one) : one)),
  )
  await changeDeals(tx, changes)
  return recorded(tx, 'pipeline.updated', after, fieldsOf(patch))
}

/**
 * Deletes a pipeline. `moveTo`: the pipeline to which its deals go, each to the stage of the same name, or else to the
 * first one with the same outcome. Throws `not_found`, `version_conflict`; `conflict` for the default pipeline, for one
 * with deals without `moveTo`, and if too many deals would move.
 */
export async function deletePipeline(
  tx: Tenant,
  id: string,
  { moveTo, ifVersion }: { moveTo?: string | undefined; ifVersion?: readonly number[] | undefined },
): Promise<Pipeline> {
  const pipelines = await lockPipelines(tx)
  const pipeline = found(pipelines, id)
  requireVersion('pipeline', pipeline.version, ifVersion)
  if (pipeline.is_default)
    throw conflict('the default pipeline cannot be deleted', { hint: 'make another one the default first' })
  const others = pipelines.filter((one) => one !== pipeline)
  const changes = await movesTo(tx, pipeline, moveTo, others)
  await changeDeals(tx, changes)
  await store(tx, others)
  return recorded(tx, 'pipeline.deleted', pipeline)
}

/** Locks the pipelines against writes of deals, and other changes, until the transaction ends. */
async function lockPipelines(tx: Tenant): Promise<Pipeline[]> {
  await lockFieldRules(tx, 'deals', true)
  return listPipelines(tx)
}

function found(pipelines: readonly Pipeline[], id: string): Pipeline {
  const pipeline = pipelines.find((one) => one.id === id.toLowerCase() || one.name === id)
  if (!pipeline) throw notFound('pipeline')
  return pipeline
}

const withoutDefault = (pipeline: Pipeline): Pipeline =>
  pipeline.is_default ? nextPipeline({ ...pipeline, is_default: false }) : pipeline

async function store(tx: Tenant, pipelines: Pipeline[]): Promise<void> {
  await tx
    .trx('pipelines')
    .insert({ organization_id: tx.organizationId, definitions: JSON.stringify(pipelines) })
    .onConflict('organization_id')
    .merge(['definitions'])
}
