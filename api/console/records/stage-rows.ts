import type { Stage } from '../../../db/model/records/pipelines/pipeline.ts'
import type { Form } from '../forms/form.ts'

/** A row of the form of a pipeline's stages, as texts. */
export interface StageRow {
  label: string
  name: string
  probability: string
  outcome: string
  required_fields: string
  order: string
  /** What becomes of the stage: empty, `remove`, or the stage to which its deals go. */
  becomes: string
  /** The names of existing stages cannot change: deals refer to them. */
  isStored: boolean
  /** Whether it is one of the stages of the body. */
  isSent: boolean
}

/** Empty rows at the end, for new stages. */
const NEW_ROWS = 3
const NAMES = ['label', 'name', 'probability', 'outcome', 'required_fields', 'order', 'becomes'] as const

const EMPTY: StageRow = {
  label: '',
  name: '',
  probability: '',
  outcome: '',
  required_fields: '',
  order: '',
  becomes: '',
  isStored: false,
  isSent: false,
}

/** The rows of the stored stages, and empty ones. */
export const rowsOf = (stages: readonly Stage[]): StageRow[] => [
  ...stages.map(
    (stage, i): StageRow => ({
      ...stage,
      probability: String(stage.probability),
      required_fields: stage.required_fields.join(', '),
      order: String(i + 1),
      becomes: '',
      isStored: true,
      isSent: true,
    }),
  ),
  ...Array.from({ length: NEW_ROWS }, () => EMPTY),
]

/** The rows of a submitted form, in the order that was typed. */
export function rowsIn(form: Form): StageRow[] {
  const columns = Object.fromEntries(NAMES.map((name) => [name, form.all(`stage.${name}`)]))
  const stored = form.all('stage.stored')
  return stored
    .map((isStored, i): StageRow => {
      const texts = Object.fromEntries(NAMES.map((name) => [name, columns[name]![i] ?? '']))
      const row = { ...EMPTY, ...texts, isStored: isStored === '1' }
      const isEmpty = !row.label.trim() && !row.name.trim()
      return { ...row, isSent: !isEmpty && row.becomes === '' }
    })
    .map((row, i) => ({ row, place: placeOf(row, i) }))
    .sort((a, b) => a.place - b.place)
    .map(({ row }) => row)
}

/** A row without a number stays where it is. */
const placeOf = ({ order }: StageRow, i: number) =>
  order.trim() !== '' && Number.isFinite(Number(order)) ? Number(order) : i + 1

/** The stages of the body, and where the deals of removed ones go. Texts that do not fit are sent as they were typed. */
export function stagesBody(form: Form): {
  stages: Record<string, unknown>[]
  moves?: Record<string, string>
} {
  const rows = rowsIn(form)
  const stages = rows
    .filter(({ isSent }) => isSent)
    .map(({ label, name, probability, outcome, required_fields }) => ({
      ...(name.trim() && { name: name.trim() }),
      ...(label.trim() && { label: label.trim() }),
      ...(probability.trim() && { probability: toNumber(probability) }),
      ...(outcome && { outcome }),
      required_fields: required_fields
        .split(',')
        .map((field) => field.trim())
        .filter(Boolean),
    }))
  const moved = rows.filter(({ becomes, isStored }) => isStored && becomes !== '' && becomes !== 'remove')
  const moves = Object.fromEntries(moved.map(({ name, becomes }) => [name, becomes]))
  return { stages, ...(moved.length > 0 && { moves }) }
}

const toNumber = (text: string) => (Number.isNaN(Number(text)) ? text : Number(text))
