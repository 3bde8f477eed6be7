import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '../../db/errors.ts'

/**
 * The versions that If-Match accepts (an ETag here is a version in quotes); undefined where any will do: no header,
 * or `*`. A tag that is no version is one that never matches. Throws `version_conflict` where none can be read.
 */
export function ifMatch(headers: IncomingHttpHeaders): readonly number[] | undefined {
  const given = headers['if-match']?.trim()
  if (given === undefined || given === '*') return undefined
  const versions = given.split(',').flatMap((tag) => {
    // Weak ones count: a proxy that compresses answers makes W/"3" of "3".
    const version = /^(?:W\/)?"(\d{1,9})"$/.exec(tag.trim())?.[1]
    return version === undefined ? [] : [Number(version)]
  })
  if (versions.length === 0)
    throw new AppError('version_conflict', 'If-Match is no ETag of ours', {
      param: 'If-Match',
      hint: 'send the ETag of the answer that you read as it is, with its quotes',
    })
  return versions
}
