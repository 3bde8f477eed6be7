import { isUtf8 } from 'node:buffer'
import type Koa from 'koa'
import { AppError } from '../../../db/model/errors.ts'
import { readBody } from '../../http/body.ts'
import { requireUtf8 } from '../../http/received.ts'

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

  constructor(fields: Iterable<[string, string]> = []) {
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

/** Throws unsupported_media_type, payload_too_large. */
export async function readForm(ctx: Koa.Context): Promise<Form> {
  if (!ctx.is('application/x-www-form-urlencoded'))
    throw new AppError('unsupported_media_type', 'the console accepts only its own forms')
  const bytes = await readBody(ctx.req, MAX_FORM)
  if (!isUtf8(bytes)) throw new AppError('invalid_request', 'the form is not UTF-8')
  const text = bytes.toString('utf8')
  requireUtf8(text, 'the form')
  return new Form(new URLSearchParams(text))
}
