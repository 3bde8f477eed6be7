import type { VNode } from 'preact'
import type { Session } from '../../db/access/sessions.ts'
import type { InnerAnswer, WholeAnswer } from '../http/inner-request.ts'
import type { Form } from './forms/form.ts'
import type { FormFile } from './forms/multipart.ts'

/** One address of the console. To add a page, add a file to `pages/` and a line to `route-table.ts`. */
export interface ConsoleRoute {
  method: 'GET' | 'POST'
  /** OpenAPI style: `/runs/{run_id}`. */
  path: string
  /** Shown without a session. */
  isPublic?: true
  /** The operation of its form: who may not call it gets no form to fill in. */
  formOf?: string
  /**
   * The address of the page of its form, for one that must be read again if the session ended or changed. Other forms
   * are kept, and sent again.
   */
  reopens?(view: View): string
  /**
   * Its form may have a file, so it is read only in a session. @returns the address of the page of the form, which opens
   * after the sign-in.
   */
  takesFile?(view: View): string
  handler(view: View): Promise<Shown>
}

/** What a handler shows: a page, or the address of another one. */
export type Shown = Page | { redirect: string }

export interface Page {
  title: string
  content: VNode
  status?: number
  /** The browser opens it again at once, as a navigation of its own. */
  reloads?: true
  /** Without the navigation: for those who are not signed in. */
  isBare?: boolean
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The request of a page, and its means: the operations of the API, as the user of the session. */
export interface View {
  /** undefined on a public page without a session. */
  session: Session | undefined
  /** IANA name: that of the organization. */
  timezone: string
  theme: Theme
  /** Without the query. */
  path: string
  params: Record<string, string>
  query: URLSearchParams
  /** The fields of a POST. */
  form: Form
  /** The public URL of the service, without a trailing slash. */
  baseUrl: string
  /** Whether strangers may sign up. */
  signsUp(): Promise<boolean>
  /** Sets a header of the response. */
  setHeader(name: string, value: string): void
  /**
   * Executes an operation: `/app/…`, or `/app/v1/…` for one of /v1. A write sends the CSRF token and the idempotency key
   * of the form. Throws SessionEnded and StaleForm.
   */
  call(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<WholeAnswer>
  /** Sends a file to an operation that accepts one of this type. Throws as `call`. */
  upload(path: string, type: string, file: FormFile, method?: 'PUT' | 'POST'): Promise<WholeAnswer>
  /** The body of a GET. Throws Refused. */
  read<T>(path: string): Promise<T>
  /** As `read`, for a part of a page that not everybody may see: undefined if the role does not allow it. */
  readIfAllowed<T>(path: string): Promise<T | undefined>
  /** As `call`, for an operation without a form of its own. Throws Refused. */
  change<T>(method: Method, path: string, body?: unknown): Promise<T>
}

export type Theme = 'light' | 'dark' | 'system'

/** A refusal of the API that is the answer of the page. */
export class Refused extends Error {
  readonly answer: InnerAnswer
  constructor(answer: InnerAnswer) {
    super('the API refused the request of a page')
    this.answer = answer
  }
}

/** The session ended while a form was filled in. */
export class SessionEnded extends Error {}

/** The form was made in another session of the user: after a new sign-in, or the change of the organization. */
export class StaleForm extends Error {}

/** A page of a list of the API. */
export interface List<T> {
  data: T[]
  limit: number
  has_more: boolean
  next_cursor: string | null
  total: number | null
  total_is_estimate: boolean
}
