/**
 * Whether a value counts as true, in `when`, `not`, `and`, `or` and a choice. Not true are false, the text `false`, which
 * forms send, and what is empty for `default` and `omit_if_empty`: null, an empty text, list or mapping.
 */
export const holds = (value: unknown): boolean => value !== false && value !== 'false' && !isEmpty(value)

/** Whether a value is null, or an empty text, list or mapping. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  if (typeof value !== 'object') return false
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0
}
