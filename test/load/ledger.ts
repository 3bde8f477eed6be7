/** An object acknowledged by 2xx, and the time in milliseconds since the epoch. */
export interface Acknowledged {
  id: string
  at: number
}

/** The acknowledgements of a load, which are checked afterwards. */
export interface Ledger {
  /** Contacts that were created through the API. */
  contacts: Acknowledged[]
  /** Contacts that incoming webhooks created. Each starts one run. */
  received: Acknowledged[]
  /** Runs of the workflow `Load` that were started by name. */
  runs: Acknowledged[]
  /** Runs of the workflow `Long` whose cancellation was accepted. */
  cancelled: Acknowledged[]
  /** Runs of the workflow `Waiting` that got both of their signals. */
  signalled: Acknowledged[]
  /** Runs of the workflow `Asks` whose approval was answered. */
  answered: Acknowledged[]
  /** Runs of the workflow `Many calls`. */
  manyCalls: Acknowledged[]
  /** Runs of the workflow `Quick` that were queued while no worker lived. */
  backlog: Acknowledged[]
  /** Attempts of requests that failed. */
  failures: number
  /** The errors of refused and abandoned requests. */
  abandoned: string[]
  /** Whether the database was restored: it may contain acknowledged requests that are not in this ledger. */
  forgetful: boolean
}

export const emptyLedger = (): Ledger => ({
  contacts: [],
  received: [],
  runs: [],
  cancelled: [],
  signalled: [],
  answered: [],
  manyCalls: [],
  backlog: [],
  failures: 0,
  abandoned: [],
  forgetful: false,
})

/** Removes the entries acknowledged between two times: the database was restored to the first time at the second. */
export function forget(ledger: Ledger, from: number, to: number): void {
  const kept = (all: Acknowledged[]) => all.filter(({ at }) => at < from || at >= to)
  ledger.contacts = kept(ledger.contacts)
  ledger.received = kept(ledger.received)
  ledger.runs = kept(ledger.runs)
  ledger.cancelled = kept(ledger.cancelled)
  ledger.signalled = kept(ledger.signalled)
  ledger.answered = kept(ledger.answered)
  ledger.manyCalls = kept(ledger.manyCalls)
  ledger.backlog = kept(ledger.backlog)
  ledger.forgetful = true
}

export const acknowledgedIn = ({ contacts, received, runs, cancelled, answered, backlog }: Ledger): number =>
  contacts.length + received.length + runs.length + cancelled.length + answered.length + backlog.length
