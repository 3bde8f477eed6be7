/** The end of accepted work, as the log and the metrics tell it: ids and numbers, nothing that tenants write. */
export interface WorkEnd {
  work: 'run' | 'delivery' | 'import' | 'export' | 'embedding'
  status: string
  organization_id: string
  /** A UUID, as it is stored. */
  trace_id?: string | null | undefined
  /** The time since it was started, in milliseconds. */
  ms: number
  /** Its ids and counts, by their names in the API. */
  of: Record<string, string | number | null>
}

/** The milliseconds since a moment, as PostgreSQL's driver or its JSON gives it. */
export const since = (moment: Date | string): number => Math.max(0, Date.now() - new Date(moment).getTime())
