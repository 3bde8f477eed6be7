import { turnsOf } from '../../workflows/shared/turns.ts'
import { AppError } from '../model/errors.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'

/** Writes many records together, while each record may fail on its own. */

export type Failed = { error: AppError }

/** The result of one of several writes, at its index. `changed`: whether it created a version. */
export type Outcome = { record: AgxRecord; created: boolean; changed: boolean } | Failed

/** Writes all items in one savepoint. If that fails, writes each in its own, to find those that fail. */
export async function inSets<T>(
  tx: Tenant,
  items: T[],
  write: (tx: Tenant, items: T[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const attempted = (set: T[]) => settle(() => savepoint(tx, (tx) => write(tx, set)))
  if (items.length > 1) {
    const together = await attempted(items)
    if (!('error' in together)) return together
  }
  const outcomes: Outcome[] = []
  for (const item of items) {
    const alone = await attempted([item])
    outcomes.push('error' in alone ? alone : alone[0]!)
  }
  return outcomes
}

/** Writes items with the same key one after the other, in order; the others together. */
export async function inWaves<T, R>(
  items: T[],
  keysOf: (item: T) => string[],
  write: (items: T[]) => Promise<R[]>,
): Promise<R[]> {
  const waves: number[][] = []
  const next = new Map<string, number>()
  for (const [place, item] of items.entries()) {
    const keys = keysOf(item)
    const wave = Math.max(0, ...keys.map((key) => next.get(key) ?? 0))
    for (const key of keys) next.set(key, wave + 1)
    waves[wave] = [...(waves[wave] ?? []), place]
  }
  const outcomes: R[] = new Array(items.length)
  for (const places of waves) {
    const written = await write(places.map((place) => items[place]!))
    for (const [i, outcome] of written.entries()) outcomes[places[i]!] = outcome
  }
  return outcomes
}

/** The record of a set of one. Throws the error of a failed write. */
export function recordOf([outcome]: Outcome[]): AgxRecord {
  if ('error' in outcome!) throw outcome.error
  return outcome!.record
}

/** Catches the AppError that `work` throws, and returns it as a value. */
export async function settle<T>(work: () => Promise<T> | T): Promise<T | Failed> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AppError) return { error }
    throw error
  }
}

/** Processes the items one after the other, many in turns of the event loop. */
export async function settleEach<T, R>(
  { organizationId }: Pick<Tenant, 'organizationId'>,
  items: T[],
  work: (item: T, place: number) => Promise<R> | R,
): Promise<(R | Failed)[]> {
  const turn = turnsOf(organizationId, items.length)
  const done: (R | Failed)[] = []
  for (const [place, item] of items.entries()) {
    await turn()
    done.push(await settle(() => work(item, place)))
  }
  return done
}
