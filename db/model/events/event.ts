/** An event that is not stored yet. */
export interface NewEvent {
  /** Set if the id must be known before the event is inserted. */
  id?: string
  /** `<entity>.<action>`, from the catalogue or raised by a node. */
  name: string
  /** Sent to subscribers as `data`: the record as the API shows it, with its id. */
  data: Record<string, unknown>
  /** The old values of the changed fields, on updates. */
  previous?: Record<string, unknown>
  /** The run that raises the event, if it is not the actor of the transaction. */
  cause?: string
  /** The id of its parent span, if it is not that of the transaction. */
  span?: string
}

/** The key of an event. */
export interface EventKey {
  organization_id: string
  event_id: string
}
