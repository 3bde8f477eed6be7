import type { Knex } from 'knex'
import type { Definition } from '../../workflows/language/definition.ts'
import type { IdPage } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { notFound } from '../model/errors.ts'
import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { getWorkflow } from './workflows.ts'

/** A saved version in a list. */
export interface VersionSummary {
  version: number
  /** Whether triggers start it. */
  active: boolean
  /** What changed since the version before; null for the first. */
  summary: string | null
  restored_from: number | null
  created_by: Actor & { name: string | null }
  created_at: Date
}

/** A saved version with its source text and definition. */
export interface Version extends VersionSummary {
  spec: string | null
  definition: Definition
}

/**
 * A page of the versions of a workflow, newest first. Throws `not_found`, `invalid_request` for a cursor of another list.
 */
export async function listVersions(
  tx: Tenant,
  workflowId: string,
  { limit, offset, cursor }: IdPage,
): Promise<Page<VersionSummary>> {
  const { version: total } = await getWorkflow(tx, workflowId)
  const hash = queryHash(['workflow_versions', workflowId])
  const query = versions(tx, workflowId)
    .select<VersionSummary[]>(...columns(tx))
    .orderBy('v.version', 'desc')
    .limit(limit + 1)
    .offset(offset)
  if (cursor !== undefined) {
    const { value } = decodeCursor(hash, cursor, (text) => /^\d{1,9}$/.test(text))
    query.where('v.version', '<', Number(value))
  }
  const rows = await query
  const data = rows.slice(0, limit)
  const last = data.at(-1)
  const has_more = rows.length > limit
  return {
    data,
    limit,
    offset,
    has_more,
    next_cursor:
      has_more && last ? encodeCursor(hash, { value: String(last.version), id: workflowId }) : null,
    // Versions are numbered from 1, and are not deleted.
    total,
    total_is_estimate: false,
  }
}

/** Throws `not_found` for the workflow or the version. */
export async function getVersion(tx: Tenant, workflowId: string, version: number): Promise<Version> {
  const row = await versions(tx, workflowId)
    .where('v.version', version)
    .first<Version | undefined>(...columns(tx), 'v.spec', 'v.definition')
  if (row) return row
  await getWorkflow(tx, workflowId)
  throw notFound('workflow version')
}

const versions = (tx: Tenant, workflowId: string): Knex.QueryBuilder =>
  tx
    .trx('workflow_versions as v')
    .join('workflows as w', (on) =>
      on.on('w.organization_id', 'v.organization_id').andOn('w.id', 'v.workflow_id'),
    )
    .where({ 'v.organization_id': tx.organizationId, 'v.workflow_id': workflowId, 'w.deleted_at': null })

const columns = (tx: Tenant) => [
  'v.version',
  tx.trx.raw('coalesce(v.version = w.active_version, false) as active'),
  'v.summary',
  'v.restored_from',
  tx.trx.raw(`json_build_object('type', v.created_by ->> 'type', 'id', v.created_by ->> 'id', 'name',
    case v.created_by ->> 'type'
      when 'user' then (select u.name from users u where u.id = cast(v.created_by ->> 'id' as uuid))
      when 'key' then (select k.name from api_keys k
        where k.organization_id = v.organization_id and k.id = cast(v.created_by ->> 'id' as uuid)) end) as created_by`),
  'v.created_at',
]
