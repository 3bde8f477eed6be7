import { readChoice, readList, splitList } from '../csv/read-cell.ts'
import { named, type Stage } from '../records/pipelines/pipeline.ts'
import { type StageToCreate, stageToCreate } from './stages.ts'
import type { Target } from './targets.ts'

/** Value of a cell → what it means: a choice, the id of a user, or null for no value. */
export type ValueMapping = Record<string, string | null>

export interface CountedValue {
  value: string
  rows: number
}

/** A value of a column, and what it means without a mapping; null: rows with it are refused. */
export interface FoundValue extends CountedValue {
  proposed: string | null
  /** What `create_stages` creates for a stage that no pipeline has. */
  creates?: StageToCreate
}

/** Somebody whom a cell may name. */
export interface NamedUser {
  id: string
  name: string
  email: string
}

/** Values that a column may have for its list to be kept, and the length of each. */
const MOST_VALUES = 100
const LONGEST = 100

/** Counts the values of a column, while they are few. */
export class ValueFinder {
  private counts: Map<string, number> | undefined = new Map()

  see(cell: string): void {
    if (!this.counts) return
    const text = cell.trim()
    if (text === '') return
    if (text.length > LONGEST) this.counts = undefined
    else if (this.counts.size < MOST_VALUES || this.counts.has(text))
      this.counts.set(text, (this.counts.get(text) ?? 0) + 1)
    else this.counts = undefined
  }

  /** Most frequent first; undefined if there are too many. */
  found(): CountedValue[] | undefined {
    return (
      this.counts &&
      [...this.counts].map(([value, rows]) => ({ value, rows })).sort((a, b) => b.rows - a.rows)
    )
  }
}

/** What the values of a column mean, where the target has a list of values: choices and users. */
export function proposeValues(
  target: Target | undefined,
  found: CountedValue[] | undefined,
  users: readonly NamedUser[],
): FoundValue[] | undefined {
  if (!target || !found) return undefined
  if (target.type === 'user')
    return found.map((one) => ({ ...one, proposed: userNamed(users, one.value) ?? null }))
  if (target.type === 'choice')
    return found.map((one) => {
      const creates = stageMissing(target, one.value)
      return { ...one, proposed: choiceMeant(target, one.value) ?? null, ...(creates && { creates }) }
    })
  if (target.type !== 'choices' && target.type !== 'tags') return undefined
  const items = new Map<string, number>()
  for (const { value, rows } of found)
    for (const item of itemsOf(target, value)) items.set(item, (items.get(item) ?? 0) + rows)
  return [...items].map(([value, rows]) => ({
    value,
    rows,
    proposed: target.type === 'tags' ? value : (choiceMeant(target, value) ?? null),
  }))
}

/** The items of a cell with a list. */
export const itemsOf = ({ type, choices = [] }: Target, text: string): string[] =>
  type === 'tags' ? readList(text) : splitList(text, choices)

/** What a value of the field is, if `meant` is none; undefined if it is one. */
export function wrongMeaning(target: Target, meant: string, users: readonly NamedUser[]): string | undefined {
  const { type, choices = [] } = target
  if (type === 'user')
    return userNamed(users, meant) === undefined ? 'the id, the email or the name of a user' : undefined
  if (type !== 'choice' && type !== 'choices') return undefined
  return choiceMeant(target, meant) === undefined
    ? `one of ${choices.join(', ')}, or null`.slice(0, 500)
    : undefined
}

/** The choice that a text means; undefined if it is none. A stage or pipeline also has a label. */
function choiceMeant(target: Target, text: string): string | undefined {
  const { choices = [] } = target
  const choice = labelled(target, text)?.name ?? readChoice(text, choices)
  return choices.includes(choice) ? choice : undefined
}

/** The stage that an import creates for a text. */
export const stageMissing = ({ name, pipelines = [] }: Target, text: string): StageToCreate | undefined =>
  name === 'stage'
    ? stageToCreate(
        pipelines.flatMap(({ stages }) => stages),
        text,
      )
    : undefined

/** Whether a text is the name or label of a stage or pipeline. */
export const isLabel = (target: Target, text: string): boolean => labelled(target, text) !== undefined

function labelled({ name, type, pipelines }: Target, text: string): Labelled | undefined {
  if (type !== 'choice' || !pipelines) return undefined
  const all: readonly Labelled[] = name === 'pipeline' ? pipelines : pipelines.flatMap(({ stages }) => stages)
  return named(all, text)
}

type Labelled = Pick<Stage, 'name' | 'label'>

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The user with this id, email or name, also `Name <email>`; undefined if there is none, or several of the name. */
export function userNamed(users: readonly NamedUser[], cell: string): string | undefined {
  const text = plain(cell)
  if (ID.test(text)) return text
  const index = indexes.get(users) ?? indexOf(users)
  indexes.set(users, index)
  const ids =
    index.get(/<([^<>]+)>$/.exec(text)?.[1] ?? text) ?? index.get(text.replace(/^([^,]+), ?(.+)$/, '$2 $1'))
  return ids?.size === 1 ? [...ids][0] : undefined
}

const plain = (text: string) => text.trim().toLowerCase().replaceAll(/\s+/g, ' ')

/** The ids of the users with an email or a name, of each list once. */
const indexes = new WeakMap<readonly NamedUser[], ReadonlyMap<string, Set<string>>>()

function indexOf(users: readonly NamedUser[]): ReadonlyMap<string, Set<string>> {
  const index = new Map<string, Set<string>>()
  for (const { id, name, email } of users)
    for (const key of [plain(name), plain(email)]) index.set(key, (index.get(key) ?? new Set()).add(id))
  return index
}
