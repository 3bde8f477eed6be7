import type { WorkflowInfo } from '@temporalio/workflow'
import type { Branches } from './branches.ts'
import { PACE } from './pace.ts'
import type { RunInput, SegmentAnswer } from './protocol.ts'

/**
 * When a run with a long history continues as new. A call in progress would be repeated then, so no node starts until
 * all calls have ended.
 */
export interface Renewal {
  /** Whether no node may start. */
  readonly drain: boolean
  /** How long the workflow waits for something to happen while no node may start. */
  readonly look: '1 minute' | '5 minutes'
  /** Whether the workflow may continue as new, after this answer or without one. */
  isDue(answer?: SegmentAnswer): boolean
  /**
   * After a segment that does not continue as new. @returns whether nodes may start again, so that the next one is due.
   */
  update(): boolean
  /** After a look. */
  looked(hasHappened: boolean): void
}

type OpenBranches = Pick<Branches, 'size' | 'calls'>
/** The history of the workflow as of its current task. */
type History = () => Pick<WorkflowInfo, 'continueAsNewSuggested' | 'historyLength' | 'historySize'>

export const renewalOf = (engine: RunInput['engine'], branches: OpenBranches, history: History): Renewal =>
  engine >= 4 ? new PatientRenewal(engine, branches, history) : new EarlierRenewal(engine, branches, history)

/**
 * If calls take long, nodes start again until the history is twice as long: a call of an hour must not hold up all
 * others. Only near Temporal's limits calls are repeated, with the same idempotency key.
 */
class PatientRenewal implements Renewal {
  drain = false
  readonly look = PACE.drainLook
  private looks = 0
  /** The part of Temporal's limits from which nodes stop to start. */
  private from = 0
  private readonly engine: RunInput['engine']
  private readonly branches: OpenBranches
  private readonly history: History

  constructor(engine: RunInput['engine'], branches: OpenBranches, history: History) {
    this.engine = engine
    this.branches = branches
    this.history = history
  }

  isDue(answer?: SegmentAnswer): boolean {
    // Whether a call would be repeated.
    const busy = this.branches.calls && (!answer || !this.drain || answer.busy === true)
    return this.isLong() && this.isShortened() && (!busy || this.used() >= MOST)
  }

  update(): boolean {
    const used = this.used()
    if (!this.drain) {
      // Version 4 stops to start nodes although it is not due, until its looks are used up.
      this.drain = this.isLong() && used >= this.from && (this.engine < 5 || this.isShortened())
      this.looks = 0
      return false
    }
    if (this.looks < PACE.drainLooks || 2 * used >= MOST) return false
    this.drain = false
    this.from = 2 * used
    return true
  }

  looked(hasHappened: boolean): void {
    if (!hasHappened) this.looks += 1
  }

  private isLong(): boolean {
    return this.history().continueAsNewSuggested
  }

  /** Whether a new history would be shorter: it begins with an event for each open node. */
  private isShortened(): boolean {
    return this.history().historyLength > 2 * this.branches.size
  }

  /** The part of its limits that the history has reached. */
  private used(): number {
    const { historyLength, historySize } = this.history()
    return Math.max(historyLength / LIMITS.events, historySize / LIMITS.bytes)
  }
}

/** The part of its limits that a history may reach, so that there is room for the end of the run. */
const MOST = 0.8

/** Temporal terminates a workflow beyond these (`limit.historyCount.error`, `limit.historySize.error`). */
const LIMITS = { events: 51_200, bytes: 50 * 1024 * 1024 }

/** Version 3 repeats the calls that are still open after a look; versions 1 and 2 never continue as new. */
class EarlierRenewal implements Renewal {
  drain = false
  readonly look = '5 minutes'
  private late = false
  private readonly engine: RunInput['engine']
  private readonly branches: OpenBranches
  private readonly history: History

  constructor(engine: RunInput['engine'], branches: OpenBranches, history: History) {
    this.engine = engine
    this.branches = branches
    this.history = history
  }

  isDue(): boolean {
    return this.isLong() && (!this.branches.calls || this.late)
  }

  update(): boolean {
    this.drain ||= this.isLong()
    return false
  }

  looked(hasHappened: boolean): void {
    this.late = !hasHappened
  }

  private isLong(): boolean {
    return this.engine >= 3 && this.history().continueAsNewSuggested
  }
}
