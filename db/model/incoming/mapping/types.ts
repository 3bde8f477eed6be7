/** The result of the mapping, before any lookup or write. */
export interface Mapped {
  /** Fields of the target's create shape. */
  fields: Record<string, unknown>
  /** The company of the record, found or created by name. */
  company_name?: string
  /** The text of a note on the record. */
  note?: string
  /** The field by which the record is found, if the payload updates one but has nothing of what a new one needs. */
  updates_by?: string
  /** Target → path in the payload, for the log and the test. */
  sources: Record<string, string>
  /** The id by which the known sender repeats a delivery, where the body has one. */
  deliveryId?: string
  /** The places of the webhook's listeners that it starts, if it has listeners. */
  listeners?: number[]
  /** The records of the batch of which this is the first. */
  batch?: number
  /** The known sender of the payload. */
  sender?: string
  /** The sender of the webhook, if the payload is plainly of another one. */
  expected_sender?: string
  /** Why the request has nothing to write: `ping of GitHub`. */
  skip?: string
  /** The paths that were not taken, for the log and the test; `unmapped_more` is the number of those not listed. */
  unmapped?: string[]
  unmapped_more?: number
  /** The parts of the payload that were not used, for the log and the test. */
  warnings?: string[]
}

/** Whether a request has neither a record to write nor a workflow to start. */
export const hasNoEffect = ({ skip, listeners = [] }: Mapped): boolean =>
  skip !== undefined && listeners.length === 0
