import type { NewEvent } from '../../db/events/outbox.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { EffectName, Effects } from '../../workflows/effects/index.ts'

/** What an activity provides to the effects for one attempt of a node. */
export interface EffectHost {
  /** The transaction of a read or write node; undefined for the other classes. */
  tx: Tenant | undefined
  /** Aborted when the attempt is cancelled or has taken too long. */
  signal: AbortSignal
  timeoutMs: number
  /** Buffers an event of the node until the transaction that records the node as completed. */
  raise(event: NewEvent): void
}

/** The implementation of each effect. */
export type EffectFactories = { [Name in EffectName]: (host: EffectHost) => Effects[Name] }

/** The transaction of an effect whose port allows only classes that have one. */
export function transactionOf({ tx }: EffectHost): Tenant {
  if (!tx) throw new Error('this effect needs a transaction')
  return tx
}
