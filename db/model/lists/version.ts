import { AppError } from '../errors.ts'

/**
 * Throws `version_conflict` unless `accepted` includes the current version; undefined accepts any. `what`: the name of
 * the changed thing for the message, such as contact.
 */
export function requireVersion(what: string, current: number, accepted: readonly number[] | undefined): void {
  if (accepted && !accepted.includes(current))
    throw new AppError('version_conflict', `the ${what} is not at the expected version`, {
      hint: `the current version is ${current}: read it again`,
    })
}
