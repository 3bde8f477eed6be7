import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { challengeOf } from '../../db/model/access/oauth-format.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { TestApi } from './api.ts'
import { formOf, textOf, type Visitor } from './console.ts'
import { noteSecrets } from './made-secrets.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = Record<string, any>

export interface OAuthAnswer {
  status: number
  headers: Headers
  body: Json
}

export const CALLBACK = 'http://127.0.0.1:33418/callback'
export const newVerifier = () => randomBytes(32).toString('base64url')

/** What a client sends of a request for a code. */
export type AuthorizationQuery = Record<string, string>

async function answerOf(response: Response): Promise<OAuthAnswer> {
  const text = await response.text()
  noteSecrets(text)
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
}

/** A request to an endpoint of OAuth with a form, as clients send it. */
export const postForm = async (
  { url }: Pick<TestApi, 'url'>,
  path: string,
  fields: Record<string, string> | [string, string][],
  headers: Record<string, string> = {},
): Promise<OAuthAnswer> =>
  answerOf(await fetch(url + path, { method: 'POST', headers, body: new URLSearchParams(fields) }))

/** Registers a client. */
export const register = async (
  { url }: Pick<TestApi, 'url'>,
  metadata: unknown = { client_name: 'Claude', redirect_uris: [CALLBACK] },
): Promise<OAuthAnswer> =>
  answerOf(
    await fetch(`${url}/oauth/register`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: typeof metadata === 'string' ? metadata : JSON.stringify(metadata),
    }),
  )

/** Forgets how many clients registered, for suites whose clients are more than one address may have. */
export const forgetRegistrations = ({ system }: Pick<Database, 'system'>) =>
  system('limit_windows').whereLike('subject', 'oauth register%').delete()

/** The id of a new client. */
export async function registered(
  api: Pick<TestApi, 'url'>,
  name = 'Claude',
  uri = CALLBACK,
): Promise<string> {
  const { status, body } = await register(api, { client_name: name, redirect_uris: [uri] })
  assert.equal(status, 201, JSON.stringify(body))
  return body.client_id
}

export const authorizePath = (query: AuthorizationQuery) => `/oauth/authorize?${new URLSearchParams(query)}`

/** The usual parameters of a request for a code. */
export const asking = (
  clientId: string,
  verifier: string,
  more: AuthorizationQuery = {},
): AuthorizationQuery => ({
  response_type: 'code',
  client_id: clientId,
  redirect_uri: CALLBACK,
  code_challenge: challengeOf(verifier),
  code_challenge_method: 'S256',
  state: 'the state',
  ...more,
})

/** Opens the consent page and sends its form, as a person does who ticks these scopes; default: those that are ticked. */
export async function consent(visitor: Visitor, path: string, scopes?: string[]): Promise<URL> {
  const page = await visitor.get(path)
  assert.equal(page.status, 200, textOf(page.html))
  const fields = formOf(page.html, '/oauth/authorize')
  const answer = await visitor.post('/oauth/authorize', scopes ? { ...fields, scopes } : fields)
  assert.equal(answer.status, 303, textOf(answer.html))
  noteSecrets(answer.location!)
  return new URL(answer.location!)
}

/** What a client knows after the consent. */
export interface Connection {
  clientId: string
  verifier: string
  code: string
}

/** A client that has a code, with these scopes. */
export async function withCode(
  api: Pick<TestApi, 'url'>,
  visitor: Visitor,
  scopes: string[] = ['contacts:write', 'deals:read'],
  clientId?: string,
): Promise<Connection> {
  const id = clientId ?? (await registered(api))
  const verifier = newVerifier()
  const back = await consent(visitor, authorizePath(asking(id, verifier)), scopes)
  return { clientId: id, verifier, code: back.searchParams.get('code')! }
}

/** The parameters that exchange a code. */
export const exchanging = ({ clientId, verifier, code }: Connection) => ({
  grant_type: 'authorization_code',
  client_id: clientId,
  code,
  code_verifier: verifier,
  redirect_uri: CALLBACK,
})

export interface Tokens {
  clientId: string
  access: string
  refresh: string
  scope: string
}

/** A client that a person has connected. */
export async function connected(
  api: Pick<TestApi, 'url'>,
  visitor: Visitor,
  scopes?: string[],
): Promise<Tokens> {
  const connection = await withCode(api, visitor, scopes)
  const { status, body } = await postForm(api, '/oauth/token', exchanging(connection))
  assert.equal(status, 200, JSON.stringify(body))
  return {
    clientId: connection.clientId,
    access: body.access_token,
    refresh: body.refresh_token,
    scope: body.scope,
  }
}

export const refreshing = (
  api: Pick<TestApi, 'url'>,
  { clientId, refresh }: Pick<Tokens, 'clientId' | 'refresh'>,
  more: Record<string, string> = {},
) =>
  postForm(api, '/oauth/token', {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: refresh,
    ...more,
  })
