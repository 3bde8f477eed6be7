import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '../../db/model/errors.ts'

/**
 * The versions in If-Match (an ETag is a version in quotes); undefined without the header or with `*`, which accept any
 * version. Tags that are not versions never match. Throws `version_conflict` if no tag is a version.
 */
export function ifMatch(headers: IncomingHttpHeaders): readonly number[] | undefined {
  const header = headers['if-match']?.trim()
  if (header === undefined || header === '*') return undefined
  const versions = header.split(',').flatMap((tag) => {
    // Weak tags are accepted: a proxy that compresses responses changes "3" to W/"3".
    const version = /^(?:W\/)?"(\d{1,9})"$/.exec(tag.trim())?.[1]
    return version === undefined ? [] : [Number(version)]
  })
  if (versions.length === 0)
    throw new AppError('version_conflict', 'If-Match has no ETag of this service', {
      param: 'If-Match',
      hint: 'send the ETag of the response unchanged, with its quotes',
    })
  return versions
}
