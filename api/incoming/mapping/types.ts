/** What a payload was understood to say, before anything is looked up or written. */
export interface Mapped {
  /** Fields of the target's create shape. */
  fields: Record<string, unknown>
  /** The company that the record belongs to, to be found by name or made. */
  company_name?: string
  /** What a note to the record is to say. */
  note?: string
  /** Where each came from, for the log and for the test: target → path in the payload. */
  sources: Record<string, string>
  /** What of the payload was left out, for the log and for the test. */
  warnings?: string[]
}
