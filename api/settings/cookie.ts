/** The session cookie: HttpOnly, and never sent from another site. */
const NAME = 'agx_session'

/** A Set-Cookie value. An empty `token` with a past `expires` deletes the cookie. */
export function sessionCookie(token: string, expires: Date, secure: boolean): string {
  const attributes = [
    `${NAME}=${token}`,
    'Path=/app',
    `Expires=${expires.toUTCString()}`,
    'HttpOnly',
    'SameSite=Strict',
  ]
  return [...attributes, ...(secure ? ['Secure'] : [])].join('; ')
}

/** The token in a Cookie header. */
export const sessionToken = (header: string | undefined) =>
  new RegExp(`(?:^|;\\s*)${NAME}=([A-Za-z0-9_-]+)`).exec(header ?? '')?.[1]
