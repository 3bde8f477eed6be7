/** A page of any list, named as on the wire. */
export interface Page<T> {
  data: T[]
  limit: number
  offset: number
  has_more: boolean
  next_cursor: string | null
  total: number | null
  total_is_estimate: boolean
}
