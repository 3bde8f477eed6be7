import type { CsvRow } from '../model/csv/rows.ts'
import type { Reading } from '../model/imports/read-row.ts'
import { type StageToCreate, stageToCreate, withStages } from '../model/imports/stages.ts'
import { defaultOf, named, type Pipeline } from '../model/records/pipelines/pipeline.ts'
import { nameFrom } from '../model/records/pipelines/presets.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from '../records/custom-fields/rules.ts'
import {
  createPipeline,
  listPipelines,
  MAX_PIPELINES,
  updatePipeline,
} from '../records/pipelines/pipelines.ts'
import type { ImportRow } from './imports.ts'

/** The stages that the rows of an import name and the organization does not have. */

/** The stages of a pipeline with more would be no list that people read. */
const MAX_STAGES = 50

/** The missing stages of one pipeline; `pipeline` is undefined if it is missing as well. */
interface Missing {
  pipeline: Pipeline | undefined
  label: string
  stages: StageToCreate[]
}

/**
 * What rows would have created. Locks the pipelines against other changes if that is anything: called before anything
 * else of the transaction locks them, since two transactions that both want more than a shared lock would wait for
 * each other.
 */
export async function missingStages(
  tx: Tenant,
  row: ImportRow,
  values: Reading['values'],
  rows: CsvRow[],
): Promise<Missing[]> {
  if (!row.create_stages || row.entity !== 'deals') return []
  const columns = ['pipeline', 'stage'].map((target) =>
    row.file!.header.findIndex((column) => row.targets![column] === target),
  )
  const texts = rows.map(({ cells }) => columns.map((index) => textOf(row, values, cells, index)))
  if ((await missingAmong(tx, texts)).length === 0) return []
  await lockFieldRules(tx, 'deals', true)
  return missingAmong(tx, texts)
}

async function missingAmong(tx: Tenant, texts: (string | undefined)[][]): Promise<Missing[]> {
  const pipelines = await listPipelines(tx)
  const found = new Map<string, Missing>()
  for (const [of, stage] of texts) {
    const pipeline = of === undefined ? defaultOf(pipelines) : named(pipelines, of)
    const label = pipeline?.label ?? of!
    const key = pipeline?.name ?? nameFrom(label)
    const missing = found.get(key) ?? { pipeline, label, stages: [] }
    const created = stage === undefined ? undefined : stageToCreate(pipeline?.stages ?? [], stage)
    if (created && !named(missing.stages, created.name)) missing.stages.push(created)
    const isFree = key !== '' && (pipeline || !pipelines.some(({ name }) => name === key))
    if (isFree && (created || !pipeline)) found.set(key, missing)
  }
  return [...found.values()]
}

/** The text of a cell, or the text that `values` puts in its place. */
function textOf(
  { file }: ImportRow,
  values: Reading['values'],
  cells: string[],
  index: number,
): string | undefined {
  const cell = cells[index]?.trim()
  if (!cell) return undefined
  const meant = values.get(file!.header[index]!)?.get(cell.toLowerCase())
  return meant === undefined ? cell : (meant ?? undefined)
}

/** Creates stages and pipelines, as far as an organization may have as many; rows with others are refused. */
export async function createStages(tx: Tenant, missing: Missing[]): Promise<void> {
  for (const { pipeline, label, stages } of missing)
    if (pipeline) {
      const free = MAX_STAGES - pipeline.stages.length
      await updatePipeline(tx, pipeline.id, {
        stages: withStages(pipeline.stages, stages.slice(0, free).map(complete)),
      })
    } else if ((await listPipelines(tx)).length < MAX_PIPELINES)
      await createPipeline(tx, {
        label: label.slice(0, 100),
        stages: withStages(
          ENDS.filter(({ outcome }) => !stages.some((stage) => stage.outcome === outcome)),
          stages.slice(0, MAX_STAGES - ENDS.length),
        ),
      })
}

const complete = (stage: StageToCreate) => ({ ...stage, required_fields: [] })

/** What a new pipeline has of each outcome that the rows do not name: new deals begin in an open stage. */
const ENDS: StageToCreate[] = [
  { name: 'open', label: 'Open', outcome: 'open', probability: 50 },
  { name: 'won', label: 'Won', outcome: 'won', probability: 100 },
  { name: 'lost', label: 'Lost', outcome: 'lost', probability: 0 },
]
