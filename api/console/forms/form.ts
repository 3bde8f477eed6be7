import { isUtf8 } from 'node:buffer'
import type Koa from 'koa'
import { AppError } from '../../../db/model/errors.ts'
import { readBody } from '../../http/body.ts'
import { requireUtf8 } from '../../http/received.ts'
import { type FormFile, readMultipart } from './multipart.ts'

/** A form may hold a YAML spec and a long note, percent-encoded. */
const MAX_FORM = 4 * 1024 * 1024

/** The fields that every form of the console has, besides its own. */
export const CSRF_FIELD = 'csrf_token'
export const KEY_FIELD = 'idempotency_key'

/** The field of a secret: a form that is shown again has it empty. */
export const SECRET_FIELD = 'secret'

/** The fields of a submitted form. Browsers send line breaks as CRLF; here they are LF. */
export class Form {
  private readonly fields: [string, string][]
  /** The file of a form that takes one, if one was chosen. */
  readonly file: FormFile | undefined

  constructor(fields: Iterable<[string, string]> = [], file?: FormFile) {
    this.file = file
    this.fields = [...fields].map(([name, value]) => [name, value.replaceAll('\r\n', '\n')])
  }

  has(name: string): boolean {
    return this.fields.some(([field]) => field === name)
  }

  /** The first value; empty if there is none. */
  get(name: string): string {
    return this.fields.find(([field]) => field === name)?.[1] ?? ''
  }

  all(name: string): string[] {
    return this.fields.filter(([field]) => field === name).map(([, value]) => value)
  }

  /** What somebody typed: without the fields of every form, and without what must be in no page. */
  typed(): [string, string][] {
    return this.fields.filter(([name]) => ![CSRF_FIELD, KEY_FIELD, 'password', SECRET_FIELD].includes(name))
  }
}

/** `takesFile`: the form may have a file. Throws unsupported_media_type, payload_too_large, invalid_request. */
export async function readForm(ctx: Koa.Context, takesFile = false): Promise<Form> {
  const boundary =
    takesFile && /^multipart\/form-data;.*boundary="?([^";]+)/i.exec(ctx.get('content-type'))?.[1]
  if (boundary) {
    const { fields, file } = await readMultipart(ctx.req, boundary)
    if (!fields.every(([, value]) => isUtf8(value))) throw notUtf8()
    return new Form(
      fields.map(([name, value]) => [name, value.toString('utf8')]),
      file,
    )
  }
  if (!ctx.is('application/x-www-form-urlencoded'))
    throw new AppError('unsupported_media_type', 'the console accepts only its own forms')
  const bytes = await readBody(ctx.req, MAX_FORM)
  if (!isUtf8(bytes)) throw notUtf8()
  const text = bytes.toString('utf8')
  requireUtf8(text, 'the form')
  return new Form(new URLSearchParams(text))
}

const notUtf8 = () => new AppError('invalid_request', 'the form is not UTF-8')
