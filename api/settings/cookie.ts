/** The cookie that holds a session: out of reach of scripts, and never sent from another site. */
const NAME = 'agx_session'

/** A Set-Cookie value; an empty `token` takes the cookie away. */
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
