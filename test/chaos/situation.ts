import type { Load } from '../load/operations.ts'
import type { Outside } from '../load/outside.ts'
import type { System } from './system.ts'
/** The system that a fault affects. */
export interface Situation {
  system: System
  outside: Outside
  load: Load
}
