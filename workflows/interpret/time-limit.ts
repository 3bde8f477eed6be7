import type { SegmentAnswer } from '../bundle/protocol.ts'
import type { Program } from '../language/definition.ts'
import { timeLeft } from './open-nodes.ts'
import type { RunFacts } from './run-state.ts'

/** The time limit of a run in one segment: what the workflow must be told of it. */
export class TimeLimit {
  private left: number | undefined
  /** Whether `left` is known although it may differ from what the workflow waits for. */
  private isNews = false
  /** Whether another limit replaces the one that the workflow knows. */
  private replaces: boolean
  private readonly program: Program
  private run: RunFacts['run']

  constructor(program: Program, run: RunFacts['run']) {
    this.program = program
    this.run = run
    this.replaces = run.migrations != null || run.ending != null
  }

  /** The cleanup of the run has begun, which has a limit of its own. */
  beginCleanup(run: RunFacts['run'], now: number): void {
    this.run = run
    this.replaces = true
    this.isNews = true
    this.left = timeLeft(this.program, run, now)
  }

  /** The commands of the open nodes are issued again: with the last part of them, the time that is left. */
  reissued(left: number | undefined, isLast: boolean): void {
    this.left = left
    this.isNews = isLast
  }

  /**
   * Whether the time limit that was over is that of a version which the run no longer has, or that of the run although
   * its cleanup has begun.
   */
  isEarly(now: number): boolean {
    if (!this.replaces) return false
    this.isNews = true
    this.left = timeLeft(this.program, this.run, now)
    return this.left === undefined || this.left > 0
  }

  get isMigrated(): boolean {
    return this.run.migrations != null
  }

  /** What the workflow must know of the limit, and of the version of a migrated run, whenever it may not know it. */
  answer({ isFirst, ended }: { isFirst: boolean; ended: boolean }): TimeAnswer {
    const timeout = isFirst && !this.run.ending ? this.program.settings.timeout_ms : this.left
    const limit = timeout === undefined || ended ? {} : { timeout_ms: timeout }
    if (!this.replaces || !(isFirst || this.isNews)) return limit
    const { workflow_version, expected_by = null } = this.run
    const version = this.isMigrated ? { version: workflow_version!, expected_by } : {}
    return { ...limit, ...version, ...(!ended && { replaces_timeout: true }) }
  }
}

type TimeAnswer = Pick<SegmentAnswer, 'timeout_ms' | 'version' | 'expected_by' | 'replaces_timeout'>
