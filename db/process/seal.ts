import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

const VERSION = 'v1'
const IV_BYTES = 12
const TAG_BYTES = 16

/** SECRETS_KEY, 32 bytes. During a rotation several keys: the first one seals, and each opens what it sealed. */
export type SecretsKey = Buffer | readonly [Buffer, ...Buffer[]]

/** All keys, the sealing key first. */
export const allKeys = (keys: SecretsKey): readonly [Buffer, ...Buffer[]] =>
  Buffer.isBuffer(keys) ? [keys] : keys

/**
 * Encrypts a secret for the database (AES-256-GCM).
 * @param owner the object that the secret belongs to. `open` needs the same value, so that an envelope is useless in
 * another row.
 * @returns `v1.<key id>.<base64url of iv, tag and ciphertext>`; equal texts give different results.
 */
export function seal(keys: SecretsKey, plaintext: string, owner = ''): string {
  const [key] = allKeys(keys)
  const header = headerOf(keys)
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(boundTo(header, owner))
  const text = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()])
  return `${header}.${Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url')}`
}

/** The prefix of all envelopes sealed with these keys. */
export const headerOf = (keys: SecretsKey): string => `${VERSION}.${keyId(allKeys(keys)[0])}`

/**
 * Decrypts the output of `seal`, with the key that the envelope names. Throws if none of the keys matches, if the
 * envelope was altered, or if it was sealed for another owner.
 */
export function open(keys: SecretsKey, sealed: string, owner = ''): string {
  const [version, id, payload] = sealed.split('.')
  if (version !== VERSION || !id || !payload) throw new Error('this is not a sealed secret')
  const key = allKeys(keys).find((candidate) => keyId(candidate) === id)
  if (!key) throw new Error(`the secret was sealed with another SECRETS_KEY (${id})`)
  const bytes = Buffer.from(payload, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(boundTo(`${version}.${id}`, owner))
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
  return Buffer.concat([text, decipher.final()]).toString('utf8')
}

const boundTo = (header: string, owner: string) => Buffer.from(owner === '' ? header : `${header}.${owner}`)

/** Identifies a key without revealing it. */
const keyId = (key: Buffer) =>
  createHash('sha256').update('agx seal key id').update(key).digest('hex').slice(0, 8)
