/** A failure that the author of a workflow can act on. `retryable: false` ends the attempts at once. */
export class NodeError extends Error {
  readonly code: string
  readonly retryable: boolean
  readonly details: Record<string, unknown>
  /** The least delay until the next attempt, as a server asked. */
  readonly retryAfterMs: number
  /** The node has done nothing and waits for its turn: another attempt follows, and this one does not count. */
  readonly waits: boolean

  constructor(
    code: string,
    message: string,
    options: {
      retryable?: boolean
      details?: Record<string, unknown>
      retryAfterMs?: number
      waits?: boolean
    } = {},
  ) {
    super(message)
    this.name = 'NodeError'
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details ?? {}
    this.retryAfterMs = options.retryAfterMs ?? 0
    this.waits = options.waits ?? false
  }
}

/** The code of a mail that waits for its turn, for minutes or hours: its run is not active meanwhile. */
export const MAIL_TURN = 'mail_rate_limited'

/** The code of a call that waits for its turn by the `rate` of its node: its run is not active meanwhile either. */
export const CALL_TURN = 'rate_limited_by_node'

/** The codes of the nodes that wait for a turn. */
export const TURNS = [MAIL_TURN, CALL_TURN] as const
