/** API keys, webhook secrets and passwords in URLs, anywhere in a text. */
const SECRET_TEXT = /\b(agx_|whsec_)[A-Za-z0-9+/=]{8,}|(:\/\/[^:/\s]+:)[^@/\s]+@/g

/** Redacts these secrets, for text that is logged or shown. */
export const redactText = (text: string) =>
  text.replace(SECRET_TEXT, (_, prefix: string | undefined, credentials: string | undefined) =>
    prefix ? `${prefix}[redacted]` : `${credentials}[redacted]@`,
  )
