import type { Caller, CallSlots, Slot } from './call-slots.ts'

/** The attempt calls a service that has no slot for it now: it is made again once it has one. */
export class ServiceBusy extends Error {
  override readonly name = 'ServiceBusy'
  readonly service: string

  constructor(service: string) {
    super('the service has no free slot')
    this.service = service
  }
}

/** Tells which service an attempt is about to call. Throws ServiceBusy. */
export type Reach = (service: string) => void

export interface Turn extends Caller {
  signal: AbortSignal
  /** Called when a wait for a slot begins, with the service if it is known. The wait goes on beside it. */
  onWait?(service: string | undefined): void
}

/**
 * Makes an attempt in a slot. Which service it calls is known only when its config is rendered: if that has no slot, the
 * attempt is given up before its first call, and made again in a slot of the service. Throws NoSlot.
 */
export async function inSlot<T>(
  slots: CallSlots,
  turn: Turn,
  attempt: (reach: Reach) => Promise<T>,
): Promise<T> {
  const { organizationId, signal, onWait } = turn
  for (let { service } = turn; ; ) {
    const taken = slots.take({ organizationId, service }, signal)
    if (taken instanceof Promise) onWait?.(service)
    const slot: Slot = await taken
    try {
      return await attempt((wanted) => {
        if (!slot.use(wanted)) throw new ServiceBusy(wanted)
      })
    } catch (error) {
      if (!(error instanceof ServiceBusy)) throw error
      service = error.service
    } finally {
      slot.release()
    }
  }
}
