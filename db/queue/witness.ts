import type { System } from '../postgres/tenancy.ts'

/** What the database knows of the witness of a task queue in Temporal (`worker/witness.ts`). */
export interface WitnessState {
  /** The last number that the witness was told. */
  sequence: number
  /** The greatest number that it had remembered when it was asked. */
  seen: number
  /** The database's time. */
  now: Date
}

export async function readWitness(system: System, taskQueue: string): Promise<WitnessState> {
  const { rows } = await system.raw<{ rows: WitnessState[] }>(
    `select coalesce(max(sequence), 0) as sequence, coalesce(max(seen), 0) as seen, now() as now
     from witnesses where task_queue = ?`,
    [taskQueue],
  )
  return rows[0]!
}

/** The next number to tell the witness, greater than all before and than `remembered`. Commit it before it is told. */
export async function nextSequence(
  system: System,
  taskQueue: string,
  remembered: number,
): Promise<{ sequence: number; at: string }> {
  const { rows } = await system.raw<{ rows: { sequence: number; at: Date }[] }>(
    `insert into witnesses (task_queue, sequence) values (:taskQueue, cast(:remembered as bigint) + 1)
     on conflict (task_queue) do update set sequence = greatest(witnesses.sequence, :remembered) + 1
     returning sequence, now() as at`,
    { taskQueue, remembered },
  )
  const { sequence, at } = rows[0]!
  return { sequence, at: at.toISOString() }
}

/** Records what the witness remembers. */
export async function markSeen(system: System, taskQueue: string, seen: number): Promise<void> {
  await system.raw('update witnesses set seen = greatest(seen, ?) where task_queue = ?', [seen, taskQueue])
}

/** Records whether Temporal knows more than this database: see `UnknownRun` in `activities/faults.ts`. */
export async function markBehind(system: System, taskQueue: string, behind: boolean): Promise<void> {
  await system.raw(
    `insert into witnesses (task_queue, behind_since) values (:taskQueue, case when :behind then now() end)
     on conflict (task_queue) do update set
       behind_since = case when :behind then coalesce(witnesses.behind_since, excluded.behind_since) end`,
    { taskQueue, behind },
  )
}

/** Whether Temporal knows more than this database, and no operator has said that it was restored. */
export async function isBehind(system: System, taskQueue: string): Promise<boolean> {
  const row = await system('witnesses')
    .where({ task_queue: taskQueue })
    .whereNotNull('behind_since')
    .first('task_queue')
  return row !== undefined
}

/** Records that Temporal has lost what it had: every open row is compared with it again. */
export async function markLost(system: System, taskQueue: string): Promise<void> {
  await system.raw(
    `with forgotten as (update witnesses set seen = 0 where task_queue = ?)
     update sweep_state set lost_at = clock_timestamp()`,
    [taskQueue],
  )
}

/** When Temporal's last loss was noticed; null: never. */
export async function readLostAt(system: System): Promise<Date | null> {
  const { lost_at } = await system('sweep_state').first('lost_at')
  return lost_at
}

/** The ids of this database, and of those that it replaced. */
export const listDatabaseIds = (system: System): Promise<string[]> => system('database_ids').pluck('id')

/**
 * Records the id of this database. `replaced`: the id of the database that it replaces, whose runs it continues. Without
 * it, a copy of another database forgets the ids of that one, whose runs are not its own.
 */
export async function recordDatabaseId(system: System, own: string, replaced?: string): Promise<void> {
  const known = await listDatabaseIds(system)
  if (!known.includes(own) && replaced === undefined) await system('database_ids').delete()
  for (const id of replaced === undefined ? [own] : [own, replaced])
    await system('database_ids').insert({ id }).onConflict().ignore()
}
