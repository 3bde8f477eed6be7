import type { KeptProgress } from '../db/runs/state.ts'
import { measured, storable } from '../workflows/interpret/storable.ts'
import type { Progress } from '../workflows/nodes/define.ts'
import { PAGES } from '../workflows/shared/limits.ts'
import { LIMITS } from '../workflows/shared/run-limits.ts'

/** What an attempt of an external node keeps in the row of the node, beside the number of attempts that still count. */
export class AttemptProgress implements Progress {
  readonly kept: unknown
  private readonly from: KeptProgress | null
  private readonly attempt: number
  private readonly until = performance.now() + PAGES.attemptMs
  private now: { value: unknown } | undefined

  constructor(from: KeptProgress | null, attempt: number) {
    // The row has begun anew, as after a reset of its run.
    const isOlder = from !== null && from.before >= attempt
    this.from = isOlder ? null : from
    this.kept = this.from?.value
    this.attempt = attempt
  }

  keep(value: unknown): void {
    this.now = { value }
  }

  /** An attempt that has kept nothing is never due: else none would come further. */
  isDue(): boolean {
    return this.now !== undefined && performance.now() > this.until
  }

  /** Whether this attempt has come further than the one before. */
  get hasGrown(): boolean {
    return this.now !== undefined
  }

  /** The attempts that the retry policy counts, with this one. */
  get counted(): number {
    return this.attempt - this.before
  }

  /** What the row shall have; undefined if it stays as it is. */
  toStore(): KeptProgress | undefined {
    return this.now && { before: this.before, value: storable(measured(this.now.value, ROOM).value) }
  }

  private get before(): number {
    return this.now ? this.attempt - 1 : (this.from?.before ?? 0)
  }
}

/** A node keeps at most an output, and where it goes on. */
const ROOM = 2 * LIMITS.valueBytes
