import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Payload } from '../../parse-body.ts'
import type { Sender } from './types.ts'

/** A copy of a payload without what another attempt of its sender changes. */
export function withoutAttempt({ attemptMembers = [] }: Sender, payload: Payload): Payload {
  const copy = structuredClone(payload)
  for (const path of attemptMembers) {
    const [member = '', ...holders] = path.split('.').reverse()
    const holder = holders.reduceRight<unknown>((value, name) => Object(value)[name], copy)
    if (isObject(holder)) delete holder[member]
  }
  return copy
}
