import { randomUUID } from 'node:crypto'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i

/** The client's own X-Request-Id where it is a UUID or ULID, else a new one: it ends up in logs, so nothing else will do. */
export function requestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && (UUID.test(given) || ULID.test(given)) ? given : randomUUID()
}
