/** How much one run may hold, and one segment may do. */
export interface Limits {
  /** Nodes that one segment runs; the rest are left to the next, so that no segment holds locks for long. */
  segmentNodes: number
  /** Milliseconds after which a segment leaves the nodes that are ready to the next. */
  segmentMs: number
  /** Bytes of one value (a rendered config, an output) as JSON. */
  valueBytes: number
  /** Bytes of the outputs of all nodes of a run together, which every segment holds in memory. */
  runBytes: number
  /** Characters of what the Temporal UI shows of a run. */
  detailsCharacters: number
}

export const LIMITS: Limits = {
  segmentNodes: 50,
  segmentMs: 500,
  valueBytes: 1024 * 1024,
  runBytes: 8 * 1024 * 1024,
  detailsCharacters: 2_000,
}
