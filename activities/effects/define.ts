import type { NewEvent } from '../../db/events/outbox.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { EffectName, Effects } from '../../workflows/effects/index.ts'
import type { Hold } from '../deadline.ts'

/** What an activity provides to the effects for one attempt of a node. */
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
  /** What calls of other services send in `traceparent`. */
  traceparent: (() => string) | undefined
  /** Buffers an event of the node until the transaction that records the node as completed. */
  raise(event: NewEvent): void
  /** Creates an object once for each run: see `once`. */
  once: Once
}

/**
 * Creates an object, unless the same node of the run created it before a reset: then it returns that one.
 * @param find reads an earlier object by its id; undefined if it no longer exists, so that it is created again.
 * @param resultOf what `find` gets too, of an object that cannot be read again; it is kept as long as the run.
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

/** The transaction of an effect whose port allows only classes that have one. */
export function transactionOf({ tx }: EffectHost): Tenant {
  if (!tx) throw new Error('this effect needs a transaction')
  return tx
}
