import { v7 as uuidv7 } from 'uuid'
import type { AnalyticsQuery } from '../../workflows/shared/analytics.ts'
import { ANALYTICS } from '../../workflows/shared/limits.ts'
import { fieldsOf, recorded } from '../access/audit-log.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { requireVersion } from '../model/lists/version.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** A chart of a report: a query with a title. */
export interface SavedChart {
  title: string
  query: AnalyticsQuery
}

/** Charts that an organization has saved. */
export interface Report {
  id: string
  name: string
  description: string | null
  charts: SavedChart[]
  version: number
  created_by: Actor
  updated_by: Actor
  created_at: Date
  updated_at: Date
}

export type ReportValues = Pick<Report, 'name' | 'description' | 'charts'>
export type ReportPatch = { [K in keyof ReportValues]?: ReportValues[K] | undefined }

const COLUMNS = [
  'id',
  'name',
  'description',
  'charts',
  'version',
  'created_by',
  'updated_by',
  'created_at',
  'updated_at',
]

const reports = (tx: Tenant) => tx.trx('reports').where({ organization_id: tx.organizationId })

/** Newest first. */
export const listReports = (tx: Tenant, page: IdPage): Promise<Page<Report>> =>
  pageById(tx, reports(tx).select(COLUMNS), page, { of: ['reports'] })

/** Throws `not_found`. */
export async function getReport(tx: Tenant, id: string): Promise<Report> {
  const row = await reports(tx).where({ id }).first<Report | undefined>(COLUMNS)
  if (!row) throw notFound('report')
  return row
}

/** Throws `conflict` above `ANALYTICS.reports`. */
export async function createReport(tx: Tenant, values: ReportValues): Promise<Report> {
  // Serialises the creations of an organization, so that they cannot exceed the limit together.
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [`${tx.organizationId} reports`])
  const [others] = await reports(tx).count<{ count: number }[]>()
  if (others!.count >= ANALYTICS.reports)
    throw conflict(`the organization already has ${ANALYTICS.reports} reports`, {
      hint: 'delete an unused report',
    })
  const actor = JSON.stringify(tx.actor)
  const [row] = await tx
    .trx('reports')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      ...columnsOf(values),
      created_by: actor,
      updated_by: actor,
    })
    .returning<Report[]>(COLUMNS)
  return recorded(tx, 'report.created', row!)
}

/** Throws `not_found`, `version_conflict`. */
export async function updateReport(
  tx: Tenant,
  id: string,
  patch: ReportPatch,
  accepted: readonly number[] | undefined,
): Promise<Report> {
  const before = await lockReport(tx, id, accepted)
  const [row] = await reports(tx)
    .where({ id })
    .update({
      ...columnsOf(patch),
      version: before.version + 1,
      updated_by: JSON.stringify(tx.actor),
      updated_at: tx.trx.fn.now(),
    })
    .returning<Report[]>(COLUMNS)
  return recorded(tx, 'report.updated', row!, fieldsOf(patch))
}

/** Throws `not_found`, `version_conflict`. */
export async function deleteReport(
  tx: Tenant,
  id: string,
  accepted: readonly number[] | undefined,
): Promise<void> {
  const row = await lockReport(tx, id, accepted)
  await reports(tx).where({ id }).delete()
  await recorded(tx, 'report.deleted', row)
}

async function lockReport(tx: Tenant, id: string, accepted: readonly number[] | undefined): Promise<Report> {
  const row = await reports(tx).where({ id }).forUpdate().first<Report | undefined>(COLUMNS)
  if (!row) throw notFound('report')
  requireVersion('report', row.version, accepted)
  return row
}

const columnsOf = ({ name, description, charts }: ReportPatch) => ({
  ...(name !== undefined && { name }),
  ...(description !== undefined && { description }),
  ...(charts !== undefined && { charts: JSON.stringify(charts) }),
})
