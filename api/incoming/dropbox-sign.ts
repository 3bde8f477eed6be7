import { parseBody } from '../../db/model/incoming/parse-body.ts'
import { isObject } from '../../workflows/shared/is-object.ts'

/** Dropbox Sign repeats an event for about three days, with its first time. In seconds. */
export const DROPBOX_SIGN_RETRIES = 4 * 86_400

/** The event of a form of Dropbox Sign, which has its signature; undefined for another body. */
export function eventOfForm(bytes: Buffer, contentType: string): Record<string, unknown> | undefined {
  try {
    const { json } = parseBody(bytes, contentType)
    return isObject(json) && isObject(json.event) ? json.event : undefined
  } catch {
    // No form, or not the one of Dropbox Sign: there is nothing to verify.
    return undefined
  }
}
