/** A part of a statement. */
export interface Fragment {
  sql: string
  bindings: unknown[]
}
