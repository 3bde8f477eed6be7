import type { IncomingHttpHeaders } from 'node:http'

const MAX_SECONDS = 30

/** The seconds of `Prefer: wait=N`, from 0 to 30. Unknown preferences are ignored. */
export function waitSeconds(headers: IncomingHttpHeaders): number {
  const preferences = [headers.prefer ?? []].flat().join(',')
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(preferences)?.[1]
  return Math.min(Number(seconds ?? 0), MAX_SECONDS)
}
