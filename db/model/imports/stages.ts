import { readChoice } from '../csv/read-cell.ts'
import { named, namesOf, type Outcome, type Stage } from '../records/pipelines/pipeline.ts'
import { nameFrom, PRESETS } from '../records/pipelines/presets.ts'

/** A stage that a file names and no pipeline has. */
export interface StageToCreate {
  name: string
  label: string
  outcome: Outcome
  probability: number
}

/** In percent: that of a stage which no known system has. */
const UNKNOWN = 50

/**
 * The stage that an import creates for a text, as the system that ships one of this name has it. Undefined for the name
 * or label of one of `stages`, and for what other systems call a closed one (`Closed Won` is `won`).
 */
export function stageToCreate(stages: readonly Stage[], text: string): StageToCreate | undefined {
  if (named(stages, text)) return undefined
  const meant = named(stages, readChoice(text, namesOf(stages)))
  if (meant && meant.outcome !== 'open') return undefined
  const label = text.trim().slice(0, 100)
  const name = nameFrom(label).slice(0, 63)
  // A name that another label has as well: `Ångström` beside `Angstrom`.
  if (name === '' || stages.some((stage) => stage.name === name)) return undefined
  const shipped = Object.values(PRESETS)
    .flatMap(({ stages }) => stages)
    .find((stage) => stage.name === name)
  const outcome = shipped?.outcome ?? (WON.test(label) ? 'won' : LOST.test(label) ? 'lost' : 'open')
  const probability = outcome === 'won' ? 100 : outcome === 'lost' ? 0 : (shipped?.probability ?? UNKNOWN)
  return { name, label, outcome, probability }
}

const WON = /\b(won|gewonnen|gagnée?|ganad[oa])\b/i
const LOST = /\b(lost|verloren|perdue?|perdid[oa]|disqualified)\b/i

/** The stages of a pipeline with further ones: open ones before those that are closed. */
export function withStages<T extends { outcome: Outcome }>(before: readonly T[], added: readonly T[]): T[] {
  const all = [...before, ...added]
  const firstClosed = before.findIndex(({ outcome }) => outcome !== 'open')
  if (firstClosed < 0)
    return [
      ...all.filter(({ outcome }) => outcome === 'open'),
      ...all.filter(({ outcome }) => outcome !== 'open'),
    ]
  const open = added.filter(({ outcome }) => outcome === 'open')
  return [
    ...before.slice(0, firstClosed),
    ...open,
    ...before.slice(firstClosed),
    ...added.filter(({ outcome }) => outcome !== 'open'),
  ]
}
