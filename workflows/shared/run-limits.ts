import { LOOP, OPEN_CALLS } from './limits.ts'

/** The limits of a run and of a segment. */
export interface Limits {
  /**
   * Nodes of one segment; the others run in the next one, so that no segment holds locks for long. A segment with more
   * nodes would count as slow (`RunCapacity`).
   */
  segmentNodes: number
  /** Milliseconds after which a segment leaves the ready nodes to the next one. */
  segmentMs: number
  /** Characters of JSON after which a segment leaves the ready nodes to the next one: one statement writes them. */
  segmentCharacters: number
  /**
   * Bytes of JSON after which the commands of the next nodes follow in the next segment; one answer has twice as many at
   * most. A workflow task holds the answers and the commands of up to five segments: less than 2 MB, encrypted or not,
   * where a message to Temporal may have 4 MB.
   */
  commandBytes: number
  /** Items of a loop that are read at a time; in a retry, with their nodes. */
  itemsPage: number
  /** Bytes of one value (a rendered config, an output) as JSON. */
  valueBytes: number
  /** Bytes of the outputs of all nodes of a run together, which every segment holds in memory. */
  runBytes: number
  /** Bytes of the inputs, outputs and results of all nodes of a run, with those of all items of its loops. */
  totalBytes: number
  /** Items of all loops of a run that are in progress at the same time. */
  openItems: number
  /** Nodes of the bodies of these items, with those of loops in them. */
  openNodes: number
  /** Calls of a run that are in progress at the same time. */
  openCalls: number
  /** Characters of a run's details in the Temporal UI. */
  detailsCharacters: number
}

export const LIMITS: Limits = {
  segmentNodes: 100,
  segmentMs: 500,
  segmentCharacters: 4 * 1024 * 1024,
  commandBytes: 64 * 1024,
  itemsPage: 50,
  valueBytes: 1024 * 1024,
  runBytes: 8 * 1024 * 1024,
  totalBytes: 512 * 1024 * 1024,
  openItems: LOOP.open,
  openNodes: LOOP.nodes,
  openCalls: OPEN_CALLS,
  detailsCharacters: 2_000,
}
