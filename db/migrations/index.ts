import type { Knex } from 'knex'
import * as foundation from './0001_foundation.ts'
import * as runs from './0004_runs.ts'

/** In order. A migration that has landed is never edited; the next one changes what it did. */
export const migrations: [name: string, migration: Knex.Migration][] = [
  ['0001_foundation', foundation],
  ['0004_runs', runs],
]
