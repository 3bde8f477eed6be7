import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/**
 * The secrets that the service makes itself: API keys, secrets of webhooks, session and CSRF tokens, tokens of links. The
 * helpers of tests that receive one (`api.ts`, `session.ts`, `stack-client.ts`, `smtp.ts`) note it here, and `planted.ts`
 * searches for it where it searches for planted ones: whatever the service keeps of it is sealed or hashed.
 *
 * Test files run in processes of their own, so that secrets are also appended to a file, with which the process that
 * started them searches the folders of the whole suite.
 */

/** Links of approvals are no secrets of this kind: their events carry them to webhooks. */
const MADE = [
  /\bagx_[0-9A-Za-z]{46}\b/g,
  /\bagx[acr]_[\w-]{43}/g,
  /\bwhsec_[A-Za-z0-9+/]{43}=/g,
  // 32 bytes in base64url, in JSON, a cookie, a link or the URL of a webhook.
  /(?<="(?:secret|token|csrf_token)":")[\w-]{43}(?=")/g,
  /(?<=\bagx_session=)[\w-]{43}\b/g,
  /(?<=\/app\/(?:invitations|password-resets|signup)\/)[\w-]{43}\b/g,
  /(?<=\/webhooks\/incoming\/[\w-]{36}(?:\?token=|\/))[\w-]{43}\b/g,
]

/** Number of characters of a part that is searched for: long enough to never occur by chance. */
const PART = 16

/** The names and first characters of keys are shown, so that the parts are of the end. */
function partsOf(secret: string): string[] {
  const end = secret.replace(/=$/, '').slice(-2 * PART)
  const encoded = [0, 1, 2].map((before) => {
    const text = Buffer.from('x'.repeat(before) + end).toString('base64')
    // The characters at the beginning also hold bits of what stands before.
    return text.slice(before === 0 ? 0 : before + 1)
  })
  return [end, end.slice(PART), ...encoded, Buffer.from(end).toString('hex')].map((text) =>
    text.slice(0, PART),
  )
}

/** By the first three bytes of a part: whether one begins so. 16 MB, and one look-up for each byte that is searched. */
let begins: Uint8Array | undefined
const parts = new Map<string, string>()
const noted = new Set<string>()

/** The file that the processes of a suite share. */
const file = () => process.env.TEST_MADE_SECRETS

function add(secret: string): void {
  noted.add(secret)
  begins ??= new Uint8Array(1 << 24)
  for (const part of partsOf(secret)) {
    parts.set(part, secret)
    begins[(part.charCodeAt(0) << 16) | (part.charCodeAt(1) << 8) | part.charCodeAt(2)] = 1
  }
}

/** Registers a secret that the service has generated. */
export function noteSecret(secret: string): void {
  if (noted.has(secret)) return
  add(secret)
  const shared = file()
  if (shared) appendFileSync(shared, `${secret}\n`)
}

/** A made-up secret of a test, of one letter, would be found everywhere. */
const isRandom = (secret: string) => new Set(secret).size > 8

/** Registers every secret in a response, its cookies or a mail. */
export function noteSecrets(...texts: string[]): void {
  for (const text of texts)
    for (const pattern of MADE)
      for (const [secret] of text.matchAll(pattern)) if (isRandom(secret)) noteSecret(secret)
}

/** Registers every secret in a response. */
export const noteSecretsOf = (headers: Headers, text: string): void =>
  noteSecrets(text, ...headers.getSetCookie())

/** The secrets of all processes of the suite. */
export function loadSharedSecrets(): void {
  const shared = file()
  if (shared && existsSync(shared))
    for (const line of readFileSync(shared, 'utf8').split('\n')) if (line) add(line)
}

/** The position of a part of a registered secret; -1 if there is none. */
export function indexOfSecret(data: Buffer): number {
  if (!begins) return -1
  let last = 0
  for (let i = 0; i < data.length; i++) {
    last = ((last << 8) | data[i]!) & 0xffffff
    if (begins[last] === 1 && i >= 2 && parts.has(data.toString('latin1', i - 2, i - 2 + PART))) return i - 2
  }
  return -1
}
