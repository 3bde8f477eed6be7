/**
 * The session cookie: HttpOnly, and never sent from another site. Over https its name has the prefix `__Host-`:
 * browsers then accept it only from this host with Secure, so that no other host of the domain can set it.
 */
const NAME = 'agx_session'
const SECURE_NAME = `__Host-${NAME}`

/** A Set-Cookie value. An empty `token` with a past `expires` deletes the cookie. */
export function sessionCookie(token: string, expires: Date, secure: boolean): string {
  const attributes = [`Expires=${expires.toUTCString()}`, 'HttpOnly', 'SameSite=Strict']
  // The prefix requires the path /, and the console is there.
  return secure
    ? [`${SECURE_NAME}=${token}`, 'Path=/', ...attributes, 'Secure'].join('; ')
    : [`${NAME}=${token}`, 'Path=/', ...attributes].join('; ')
}

/** The token in a Cookie header. Over https only the cookie with the prefix counts. */
export const sessionToken = (header: string | undefined, secure: boolean) =>
  new RegExp(`(?:^|;\\s*)${secure ? SECURE_NAME : NAME}=([A-Za-z0-9_-]+)`).exec(header ?? '')?.[1]
