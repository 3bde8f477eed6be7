import { AppError } from '../errors.ts'

/**
 * Refuses a change that was made for another version than the current one. `accepted` undefined: any will do.
 * `what`: a contact, a workflow, as the message names it. Throws `version_conflict`.
 */
export function requireVersion(what: string, current: number, accepted: readonly number[] | undefined): void {
  if (accepted && !accepted.includes(current))
    throw new AppError('version_conflict', `the ${what} has changed since`, {
      hint: `it is at version ${current}: read it again`,
    })
}
