import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import type { Sealer } from '../model/sealer.ts'

const VERSION = 'v1'
const IV_BYTES = 12
const TAG_BYTES = 16

/** SECRETS_KEY, 32 bytes. During a rotation several keys: the first one seals, and each opens what it sealed. */
export type SecretsKey = Buffer | readonly [Buffer, ...Buffer[]]

/** What seals and opens with these keys. */
export const sealerOf = (keys: SecretsKey): Sealer => ({
  seal: (plaintext, owner) => seal(keys, plaintext, owner),
  open: (sealed, owner) => open(keys, sealed, owner),
})

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
  const header = headerOf(keys)
  const sealed = sealBytes(allKeys(keys)[0], Buffer.from(plaintext), boundTo(header, owner))
  return `${header}.${sealed.toString('base64url')}`
}

/**
 * Encrypts bytes (AES-256-GCM). @param boundTo what `openBytes` must be given, too. @returns iv, tag and ciphertext.
 */
export function sealBytes(key: Buffer, bytes: Uint8Array, boundTo: Buffer): Buffer {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(boundTo)
  const ciphertext = Buffer.concat([cipher.update(bytes), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), ciphertext])
}

/** Decrypts the output of `sealBytes`. Throws if it was altered, or sealed with another key or for something else. */
export function openBytes(key: Buffer, sealed: Uint8Array, boundTo: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(boundTo)
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const bytes = decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES))
  return Buffer.concat([bytes, decipher.final()])
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
  return openBytes(key, Buffer.from(payload, 'base64url'), boundTo(`${version}.${id}`, owner)).toString()
}

const boundTo = (header: string, owner: string) => Buffer.from(owner === '' ? header : `${header}.${owner}`)

/** Identifies a key without revealing it. */
export const keyId = (key: Buffer) =>
  createHash('sha256').update('agx seal key id').update(key).digest('hex').slice(0, 8)
