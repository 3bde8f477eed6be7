import { AppError } from '../errors.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import type { AgxRecord } from './model/schemas.ts'

/** How many things are done together although each may fail alone. */

/** What became of one of them, at its place in the answer. */
export type Outcome = { record: AgxRecord; created: boolean } | { error: AppError }

/** All of them as one set in a savepoint, but for those that must be done alone; where that fails, each alone. */
export async function inSets<T>(
  tx: Tenant,
  items: T[],
  alone: (item: T) => boolean,
  set: (tx: Tenant, items: T[]) => Promise<Outcome[]>,
  one: (tx: Tenant, item: T) => Promise<Outcome>,
): Promise<Outcome[]> {
  const together = items.filter((item) => !alone(item))
  const done = together.length > 1 ? await settle(() => savepoint(tx, (tx) => set(tx, together))) : undefined
  const outcomes: Outcome[] = []
  let next = 0
  for (const item of items) {
    const outcome = done && !('error' in done) && !alone(item) ? done[next++] : undefined
    outcomes.push(outcome ?? (await settle(() => savepoint(tx, (tx) => one(tx, item)))))
  }
  return outcomes
}

/** Those that share a key go one after the other, in order; the first of each go together, then the second. */
export async function inWaves(
  keys: (string | undefined)[],
  work: (places: number[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const waves: number[][] = []
  const seen = new Map<string, number>()
  for (const [place, key] of keys.entries()) {
    const wave = key === undefined ? 0 : (seen.get(key) ?? 0)
    if (key !== undefined) seen.set(key, wave + 1)
    waves[wave] = [...(waves[wave] ?? []), place]
  }
  const outcomes: Outcome[] = new Array(keys.length)
  for (const places of waves)
    for (const [i, outcome] of (await work(places)).entries()) outcomes[places[i]!] = outcome
  return outcomes
}

export const pick = <T>(items: T[], places: number[]): T[] => places.map((place) => items[place]!)

/** What went wrong as a value, where it is something to be told about one of many. */
export async function settle<T>(work: () => Promise<T>): Promise<T | { error: AppError }> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError) return { error }
    throw error
  }
}

export function attempt<T>(work: () => T): T | { error: AppError } {
  try {
    return work()
  } catch (error) {
    if (error instanceof AppError) return { error }
    throw error
  }
}
