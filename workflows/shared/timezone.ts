export const NO_TIMEZONE = 'must be an IANA name such as Europe/Zurich'

/** Whether `name` is an IANA time zone, such as Europe/Zurich. */
export function isTimezone(name: string): boolean {
  try {
    // Intl accepts offsets such as +01:00 too, which are not names.
    return /^[A-Z]/.test(name) && Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}
