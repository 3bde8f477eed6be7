/**
 * Whether a value holds, in a `when` as in `not`, `and`, `or` and a choice: false does not, nor does what is empty, as
 * `default` and `omit_if_empty` count it: null, an empty text, list or mapping. The text `false` does not either, which
 * forms send.
 */
export const holds = (value: unknown): boolean => value !== false && value !== 'false' && !isEmpty(value)

/** Whether a value is null, or an empty text, list or mapping. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  if (typeof value !== 'object') return false
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0
}
