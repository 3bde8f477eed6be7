import { DOCUMENT } from '../../../workflows/shared/limits.ts'
import { AppError } from '../errors.ts'

/** A text field of a multipart form. */
export type FormField = [name: string, value: string]

const HEADERS_END = Buffer.from('\r\n\r\n')

/**
 * The fields of a `multipart/form-data` body (RFC 7578). A file is its name: its content is not kept. Throws
 * invalid_request.
 */
export function parseMultipart(
  bytes: Buffer,
  contentType: string,
  decode: (bytes: Buffer) => string,
): FormField[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  if (!boundary) throw invalid('has no boundary in its Content-Type')
  const fields: FormField[] = []
  for (const part of partsOf(bytes, `--${boundary[1] ?? boundary[2]}`)) {
    if (fields.length === DOCUMENT.formFields) throw invalid('has too many fields')
    const end = part.indexOf(HEADERS_END)
    if (end < 0) throw invalid('has a part without a header')
    const disposition = /^content-disposition:\s*form-data(.*)$/im.exec(decode(part.subarray(0, end)))?.[1]
    const name = disposition && parameter(disposition, 'name')
    if (name === undefined) throw invalid('has a part without a name')
    const file = parameter(disposition!, 'filename')
    fields.push([name, file ?? decode(part.subarray(end + HEADERS_END.length))])
  }
  return fields
}

function* partsOf(bytes: Buffer, delimiter: string): Generator<Buffer> {
  // The text before the first delimiter is none of the form.
  let start = bytes.indexOf(delimiter)
  if (start !== 0 && bytes.subarray(Math.max(0, start - 2), Math.max(0, start)).toString() !== '\r\n')
    throw invalid('does not have its boundary')
  for (;;) {
    start += delimiter.length
    const next = bytes.subarray(start, start + 2).toString('latin1')
    if (next === '--') return
    if (next !== '\r\n') throw invalid('is cut off')
    const end = bytes.indexOf(`\r\n${delimiter}`, start)
    if (end < 0) throw invalid('is cut off')
    yield bytes.subarray(start + 2, end)
    start = end + 2
  }
}

/** A parameter of Content-Disposition. Browsers write a quotation mark in it as `%22`. */
function parameter(disposition: string, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, 'i').exec(disposition)
  return (found?.[1] ?? found?.[2])?.replace(/\\(.)/g, '$1').replaceAll('%22', '"')
}

const invalid = (what: string) => new AppError('invalid_request', `the multipart form ${what}`)
