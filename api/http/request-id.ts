import { randomUUID } from 'node:crypto'
import { UUID } from '../../workflows/shared/uuid.ts'

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i

/** The X-Request-Id of the client if it is a UUID or ULID, else a new one. Other text must not get into logs. */
export function requestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && (UUID.test(given) || ULID.test(given)) ? given : randomUUID()
}
