import type { CancelRule, CancelSpec, Definition } from '../language/definition.ts'
import { isSameRecord } from './same-record.ts'

/** The rules of `cancel_on` as they are written, with their places. */
export function cancelSpecs({ cancel_on }: Definition['settings']): { spec: CancelSpec; path: string }[] {
  const path = '/settings/cancel_on'
  if (cancel_on === undefined) return []
  if (!Array.isArray(cancel_on)) return [{ spec: cancel_on, path }]
  return cancel_on.map((spec, index) => ({ spec, path: `${path}/${index}` }))
}

/** The compiled rules. */
export const cancelRules = (settings: Definition['settings']): CancelRule[] =>
  cancelSpecs(settings).map(({ spec: { event, when } }) => ({
    events: [...new Set([event].flat())],
    ...(when === undefined ? {} : { when }),
    ...(when !== undefined && isSameRecord(when) ? { same_record: true } : {}),
  }))
