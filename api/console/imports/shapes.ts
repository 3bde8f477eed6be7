/** An import as the API shows it, as far as pages read it. */
export interface Import {
  id: string
  entity: string
  mode: string
  by: string | null
  dry_run: boolean
  status: string
  mapping: Record<string, string | null>
  time_zone: string | null
  country: string | null
  create_stages: boolean
  file: {
    bytes: number
    rows: number
    encoding: string
    delimiter: string
    source: string | null
    columns: ImportColumn[]
    available: boolean
  } | null
  progress: { rows: number; created: number; updated: number; skipped: number; failed: number }
  preview:
    | {
        row: number
        line: number
        action: string
        record_id: string | null
        changes: Record<string, unknown>
      }[]
    | null
  error: { message: string; hint?: string } | null
  created_at: string
  started_at: string | null
  ended_at: string | null
}

export interface ImportColumn {
  name: string
  proposed: string | null
  dropped: string | null
  samples: string[]
  values: { value: string; rows: number; proposed: string | null }[] | null
  format: { decimal: string | null; date: string | null; open: string[] }
}

/** What a refused start shows beside the import. */
export interface Refusal {
  problems?: string[]
  /** By column. */
  byColumn?: Map<string, string[]>
  /** What was typed, by the names of the form. */
  typed?: { get(name: string): string; has(name: string): boolean }
  status?: number
}
