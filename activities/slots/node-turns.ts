import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common'
import type { Database } from '../../db/postgres/connect.ts'
import type { Logger } from '../../db/process/log.ts'
import { markSlotWanted } from '../../db/runs/state.ts'
import type { NodeInput } from '../../workflows/bundle/protocol.ts'
import { withoutStack } from '../faults.ts'
import { type CallSlots, NoSlot } from './call-slots.ts'
import { inSlot, type Reach, ServiceBusy } from './in-slot.ts'

/** The type of the failure of an activity that found no slot. Temporal repeats it; the row of the node waits. */
export const NO_SLOT = 'no_slot'

/** The row of a node shows its wait after so many milliseconds: most waits are shorter than the statement takes. */
const SHOWN_AFTER_MS = 500
/** The calls that are remembered; of the others, the service is found again by an attempt that is given up. */
const MOST_REMEMBERED = 20_000

/** What the process knows of a call that waits, also between two attempts of Temporal. */
interface Waiting {
  service: string | undefined
  /** Whether its row says that it waits. */
  shown: boolean
}

/** Gives the attempts of the nodes of runs their slots. A node that waits says so in its row (`slot_wanted_at`). */
export class NodeTurns {
  private readonly waiting = new Map<string, Waiting>()
  private readonly slots: CallSlots
  private readonly db: Database
  private readonly log: Logger

  constructor({ slots, db, log }: { slots: CallSlots; db: Database; log: Logger }) {
    this.slots = slots
    this.db = db
    this.log = log
  }

  /**
   * Makes an attempt in a slot; `attempt` tells with `reach` which service it calls. Throws a retryable failure if no
   * slot and no place to wait is free: meanwhile the call holds nothing in this process.
   */
  async run(input: NodeInput, signal: AbortSignal, attempt: (reach: Reach) => Promise<void>): Promise<void> {
    const key = `${input.run_id}/${input.path ?? ''}/${input.node}`
    let timer: NodeJS.Timeout | undefined
    let showing: Promise<void> | undefined
    const show = () => {
      showing ??= this.show(input, key)
      return showing
    }
    const onWait = (service: string | undefined) => {
      this.remember(key, service)
      timer ??= setTimeout(show, SHOWN_AFTER_MS)
    }
    const begin = async (reach: Reach) => {
      clearTimeout(timer)
      // The attempt clears what the row says.
      await showing
      timer = showing = undefined
      this.waiting.delete(key)
      await attempt(reach).catch(async (error: unknown) => {
        if (error instanceof ServiceBusy) {
          this.remember(key, error.service)
          await this.show(input, key, true)
        }
        throw error
      })
    }
    const { service } = this.waiting.get(key) ?? {}
    try {
      await inSlot(this.slots, { organizationId: input.organization_id, service, signal, onWait }, begin)
    } catch (error) {
      if (!(error instanceof NoSlot)) {
        this.waiting.delete(key)
        throw error
      }
      await show()
      throw noSlot(error.retryInMs)
    } finally {
      clearTimeout(timer)
    }
  }

  private remember(key: string, service: string | undefined): void {
    const { shown = false } = this.waiting.get(key) ?? {}
    if (this.waiting.size >= MOST_REMEMBERED)
      for (const oldest of this.waiting.keys()) {
        this.waiting.delete(oldest)
        break
      }
    this.waiting.set(key, { service, shown })
  }

  private async show(input: NodeInput, key: string, givenUp = false): Promise<void> {
    const waiting = this.waiting.get(key)
    if (waiting?.shown) return
    const actor = { type: 'workflow_run', id: input.run_id } as const
    try {
      await this.db.tenant(input.organization_id, actor, (tx) => markSlotWanted(tx, input, givenUp))
      if (waiting) waiting.shown = true
    } catch (error) {
      this.log.warn(
        { err: error, run_id: input.run_id, node: input.node },
        'a wait for a slot could not be shown',
      )
    }
  }
}

const noSlot = (retryInMs: number) =>
  withoutStack(
    ApplicationFailure.create({
      type: NO_SLOT,
      message:
        'The call waits for a free slot: the organization, or the service that is called, has as many as it may now.',
      nextRetryDelay: retryInMs,
      // The worker does not log a benign failure as its own.
      category: ApplicationFailureCategory.BENIGN,
    }),
  )
