/** Text that looks like one of our keys or webhook secrets, or like the password of a URL, wherever it occurs. */
const SECRET_TEXT = /\b(agx_|whsec_)[A-Za-z0-9+/=]{8,}|(:\/\/[^:/\s]+:)[^@/\s]+@/g

/** The text with such secrets replaced: for whatever is logged or shown. */
export const redactText = (text: string) =>
  text.replace(SECRET_TEXT, (_, prefix: string | undefined, credentials: string | undefined) =>
    prefix ? `${prefix}[redacted]` : `${credentials}[redacted]@`,
  )
