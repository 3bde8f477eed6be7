import type { NewEvent } from '../../db/model/events/event.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Logger } from '../../db/process/log.ts'
import type { ReceivedFile } from '../../db/stored-files/files.ts'
import type { EffectName, Effects } from '../../workflows/effects/index.ts'
import type { LightCompute } from '../compute/light-work.ts'
import type { Hold } from '../deadline.ts'
import type { Reach } from '../slots/in-slot.ts'

/** What an activity provides to the effects of one attempt of a node. */
export interface EffectHost {
  /** The transaction of a read or write node; undefined for the other classes. */
  tx: Tenant | undefined
  organizationId: string
  runId: string
  /** Aborted when the attempt is cancelled or has taken too long. */
  signal: AbortSignal
  timeoutMs: number
  /** Stops the clock of the time limit while the attempt waits for its turn. */
  hold: Hold
  /** Computes what may take long; nodes in a transaction call it before they write. */
  compute: LightCompute
  /** Called before each call of another service: of the first one, the attempt holds a slot. */
  reach: Reach
  log: Logger
  /** The value of `traceparent` for calls of other services. */
  traceparent: (() => string) | undefined
  /** Buffers an event, which the transaction that records the node as completed writes. */
  raise(event: NewEvent): void
  /** Takes a file that the attempt has received: it is stored in the transaction that records the node as completed. */
  received(file: ReceivedFile): void
  /** Creates an object once in a run. */
  once: Once
}

/**
 * Creates an object, unless the same node of the run created it before a reset: then it returns the earlier object.
 * @param find reads an earlier object by its id; undefined if it no longer exists, so that it is created again.
 * @param resultOf the result to store with the run and to pass to `find`, for an object that cannot be read again.
 */
export type Once = <T>(
  object: string,
  find: (id: string, result: unknown) => Promise<T | undefined>,
  create: () => Promise<T>,
  idOf: (created: T) => string,
  resultOf?: (created: T) => unknown,
) => Promise<T>

/** The implementation of each effect. */
export type EffectFactories = { [Name in EffectName]: (host: EffectHost) => Effects[Name] }

/** The transaction, for effects whose port allows only classes with one. */
export function transactionOf({ tx }: EffectHost): Tenant {
  if (!tx) throw new Error('this effect needs a transaction')
  return tx
}
