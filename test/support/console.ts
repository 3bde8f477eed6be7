import assert from 'node:assert/strict'
import type { MemberRole } from '../../db/model/access/roles.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { TestApi } from './api.ts'
import { sessionHeaders } from './session.ts'

export interface ShownPage {
  status: number
  headers: Headers
  html: string
  /** Where it leads to. */
  location: string | null
}

export interface Visitor {
  /** The headers of the session. */
  headers: Record<string, string>
  get(path: string): Promise<ShownPage>
  /** Sends a form as a browser does: without its token if `fields` has none. */
  post(path: string, fields: Record<string, string | string[]>): Promise<ShownPage>
  /** Sends a form with a file, which is its last field. */
  upload(path: string, fields: Record<string, string | string[]>, content: string | File): Promise<ShownPage>
  /** Opens a page, and sends its form to `action` with the fields that it shows; `fields` are those that change. */
  submit(path: string, action: string, fields: Record<string, string | string[]>): Promise<ShownPage>
}

/** Pages of the console as a browser without JavaScript reads them, in the session of a new member of this role. */
export async function visit(db: Database, api: TestApi, role: MemberRole = 'owner'): Promise<Visitor> {
  return visitWith(api, await sessionHeaders(db, api, role))
}

/** The same with the headers of a session; without any: signed out. */
export function visitWith(api: TestApi, headers: Record<string, string> = {}): Visitor {
  const { 'X-CSRF-Token': _, ...kept } = headers
  const open = async (path: string, options: RequestInit = {}): Promise<ShownPage> => {
    const answer = await fetch(api.url + path, {
      ...options,
      redirect: 'manual',
      headers: { ...kept, ...(options.headers as Record<string, string>) },
    })
    return {
      status: answer.status,
      headers: answer.headers,
      html: await answer.text(),
      location: answer.headers.get('location'),
    }
  }
  const post: Visitor['post'] = (path, fields) =>
    open(path, {
      method: 'POST',
      body: new URLSearchParams(pairsOf(fields)).toString(),
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Site': 'same-origin' },
    })
  return {
    headers,
    get: (path) => open(path),
    post,
    upload(path, fields, content) {
      const body = new FormData()
      for (const [name, value] of pairsOf(fields)) if (name !== 'file') body.append(name, value)
      const file =
        typeof content === 'string' ? new File([content], 'list "1".csv', { type: 'text/csv' }) : content
      body.append('file', file)
      return open(path, { method: 'POST', body, headers: { 'Sec-Fetch-Site': 'same-origin' } })
    },
    async submit(path, action, fields) {
      const page = await open(path)
      assert.equal(page.status, 200, textOf(page.html))
      const shown = formOf(page.html, action)
      for (const name of Object.keys(fields)) delete shown[name]
      return post(action, { ...shown, ...fields })
    },
  }
}

/** The text of a page's content, to show in the message of an assertion. */
export const textOf = (html: string) =>
  (/<main[^>]*>([\s\S]*)<\/main>/.exec(html)?.[1] ?? html)
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .slice(0, 2_000)

const pairsOf = (fields: Record<string, string | string[]>): [string, string][] =>
  Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  )

/** The fields of the form that posts to this action: what a browser would send if nothing were typed. */
export function formOf(html: string, action: string): Record<string, string | string[]> {
  const found = [
    ...html.matchAll(/<form (?![^>]*method="get")[^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/g),
  ]
  const form = found.find(([, to]) => to === action)?.[2]
  assert.ok(form, `no form to ${action}, but to ${found.map(([, to]) => to).join(', ')}`)
  const fields: Record<string, string | string[]> = {}
  const put = (name: string, value: string) => {
    const before = fields[name]
    fields[name] = before === undefined ? value : [before, value].flat()
  }
  for (const [tag] of form.matchAll(/<input (?:[^>"]|"[^"]*")*>/g)) {
    const isBox = /type="(checkbox|radio)"/.test(tag)
    const name = attribute(tag, 'name')
    if (name && (!isBox || /\bchecked\b/.test(tag))) put(name, attribute(tag, 'value') ?? '')
  }
  for (const [, tag = '', text = ''] of form.matchAll(/<textarea ([^>]*)>([\s\S]*?)<\/textarea>/g))
    put(attribute(tag, 'name')!, unescaped(text))
  for (const [, tag = '', options = ''] of form.matchAll(/<select ([^>]*)>([\s\S]*?)<\/select>/g)) {
    const all = [...options.matchAll(/<option((?:[^>"]|"[^"]*")*)>/g)].map(([, option = '']) => option)
    const selected = all.filter((option) => /\bselected\b/.test(option))
    const sent = selected.length > 0 || /\bmultiple\b/.test(tag) ? selected : all.slice(0, 1)
    for (const option of sent) put(attribute(tag, 'name')!, attribute(option, 'value') ?? '')
  }
  return fields
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(tag)?.[1]
  return value === undefined ? undefined : unescaped(value)
}

const unescaped = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
