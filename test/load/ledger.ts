/** Something that was acknowledged by 2xx, and when, in milliseconds since the epoch. */
export interface Acknowledged {
  id: string
  at: number
}

/** What a load was promised, and what is therefore checked afterwards. */
export interface Ledger {
  /** Contacts that were created through the API. */
  contacts: Acknowledged[]
  /** Contacts that incoming webhooks created. Each starts one run. */
  received: Acknowledged[]
  /** Runs of the workflow `Load` that were started by name. */
  runs: Acknowledged[]
  /** Runs of the workflow `Long` whose cancellation was accepted. */
  cancelled: Acknowledged[]
  /** Attempts of requests that failed. */
  failures: number
  /** The errors of requests that were refused, or given up. */
  abandoned: string[]
  /** Whether the database was restored: it may hold requests that were acknowledged but are not in this ledger. */
  forgetful: boolean
}

export const emptyLedger = (): Ledger => ({
  contacts: [],
  received: [],
  runs: [],
  cancelled: [],
  failures: 0,
  abandoned: [],
  forgetful: false,
})

/** Removes what was acknowledged between two times: the database was restored to the first one at the second one. */
export function forget(ledger: Ledger, from: number, to: number): void {
  const kept = (all: Acknowledged[]) => all.filter(({ at }) => at < from || at >= to)
  ledger.contacts = kept(ledger.contacts)
  ledger.received = kept(ledger.received)
  ledger.runs = kept(ledger.runs)
  ledger.cancelled = kept(ledger.cancelled)
  ledger.forgetful = true
}

export const acknowledgedIn = ({ contacts, received, runs, cancelled }: Ledger): number =>
  contacts.length + received.length + runs.length + cancelled.length
