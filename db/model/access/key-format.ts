import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * API keys: `agx_` + 40 random base62 characters + 6 characters of their CRC32. The checksum lets a typo, or a false
 * positive of a secret scanner, be detected without a look-up. Only the SHA-256 of a key is stored: with more than 200
 * bits of entropy a slow hash would only add latency.
 */
const PREFIX = 'agx_'
const RANDOM_LENGTH = 40
const CHECKSUM_LENGTH = 6
const KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH
const PATTERN = new RegExp(`^${PREFIX}[0-9A-Za-z]+$`)
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Whether a text has the form of a key, including the checksum. */
export const isKey = (text: string): boolean => flawOfKey(text) === undefined

/** The flaw in the form of a key; undefined if the form is valid. It reveals nothing about existing keys. */
export function flawOfKey(text: string): string | undefined {
  if (!text.startsWith(PREFIX)) return `a key starts with ${PREFIX}`
  if (text.length !== KEY_LENGTH)
    return `a key has ${KEY_LENGTH} characters, this one has ${text.length}: copy the whole key and nothing else`
  if (!PATTERN.test(text)) return `a key has only letters and digits after ${PREFIX}`
  const random = text.slice(PREFIX.length, -CHECKSUM_LENGTH)
  if (!text.endsWith(checksum(random)))
    return 'the checksum of the key does not match: at least one character is wrong'
  return undefined
}

export function generateKey(): string {
  let random = ''
  while (random.length < RANDOM_LENGTH)
    for (const byte of randomBytes(RANDOM_LENGTH)) {
      // 248 is the largest multiple of 62 below 256: larger bytes would make some characters more likely.
      if (byte < 248 && random.length < RANDOM_LENGTH) random += BASE62[byte % 62]
    }
  return keyOf(random)
}

/** The key with these 40 random characters. */
export const keyOf = (random: string): string => PREFIX + random + checksum(random)

function checksum(random: string): string {
  let rest = crc32(random)
  let text = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = BASE62[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** The SHA-256 of a key, which is stored instead of the key. */
export const hashKey = (key: string) => createHash('sha256').update(key).digest()
/** The first characters of a key, which identify it to people. */
export const visiblePrefix = (key: string) => key.slice(0, PREFIX.length + 6)
