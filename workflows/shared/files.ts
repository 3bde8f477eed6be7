import { z } from 'zod'
import { FILES } from './limits.ts'

/** What nodes pass on instead of the content of a file, which is never in PostgreSQL or Temporal. */
export interface FileReference {
  file_id: string
  name: string
  content_type: string
  /** In bytes. */
  size: number
}

/** A reference in the output of a node. */
export const fileReference = z.strictObject({
  file_id: z.string(),
  name: z.string(),
  content_type: z.string(),
  size: z.int().describe('In bytes.'),
})

export const FILE_NAME_RULE = `must have 1 to ${FILES.name} characters, without slashes, control characters and spaces around it`

/** A file in the config of a node: what another node has returned. */
export const givenFile = z.object({ file_id: z.uuid() })

/** Whether a name is safe in the header of a mail or a download, and as the name of a file on any system. */
export const isFileName = (name: string): boolean =>
  name !== '' &&
  name.length <= FILES.name &&
  name.trim() === name &&
  name !== '.' &&
  name !== '..' &&
  !UNSAFE.test(name)

export const fileName = z.string().refine(isFileName, FILE_NAME_RULE)

/** Separators of paths, controls, line separators, characters that change the direction of text, lone surrogates. */
const UNSAFE = /[/\\\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\p{Surrogate}]/u
const EACH_UNSAFE = new RegExp(UNSAFE, 'gu')

/** A name that another service has chosen, made safe; undefined if nothing is left of it. */
export function toFileName(text: string): string | undefined {
  const name = text.slice(-FILES.name).replace(EACH_UNSAFE, '_').trim()
  return isFileName(name) ? name : undefined
}

export const BINARY = 'application/octet-stream'

/** The media type of a Content-Type without its parameters; `BINARY` if there is none. */
export function mediaType(contentType: string | undefined): string {
  const type = (contentType ?? '').split(';')[0]!.trim().toLowerCase()
  return /^[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}$/.test(type) ? type : BINARY
}
