import { type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { hash, verify } from '@node-rs/argon2'
import { boundedWork } from './bounded-work.ts'

/**
 * Parameters of Argon2id (memory in KiB): the library's defaults, 64 MiB and two passes, about 0.1 s. OWASP's minimum
 * is 19 MiB and two passes.
 */
const COST = { memoryCost: 65_536, timeCost: 2, parallelism: 1 }
const CURRENT = `$argon2id$v=19$m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}$`
/** A hash that no password matches, and whose check takes as long as that of a real one. */
const DECOY = `${CURRENT}${'A'.repeat(22)}$${'A'.repeat(43)}`

export interface Checked {
  right: boolean
  /** The new hash to store if the password is right and its stored hash has an older format. */
  replacement?: string
}

/** @returns the PHC string: `$argon2id$v=19$m=65536,t=2,p=1$salt$hash`. Throws unavailable. */
export const hashPassword = (password: string): Promise<string> => hashing(() => create(password))

/**
 * Checks a password against its hash. It takes as long without a hash, so that the time does not reveal whether a user
 * exists. Throws unavailable.
 */
export function checkPassword(password: string, stored: string | undefined): Promise<Checked> {
  return hashing(async () => {
    const right = await matches(password, stored)
    return right && !stored!.startsWith(CURRENT) ? { right, replacement: await create(password) } : { right }
  })
}

/**
 * Limits of this process, whose memory and four libuv threads the hashing uses: two threads remain for files and DNS. A
 * full queue is worked off within about a second.
 */
const hashing = boundedWork({ concurrent: 2, waiting: 10 })

const create = (password: string) => hash(normalized(password), COST)

async function matches(password: string, stored = DECOY): Promise<boolean> {
  if (stored.startsWith('$argon2')) return verify(stored, normalized(password))
  if (stored.startsWith('scrypt$')) return matchesScrypt(password, stored)
  // A user without a password.
  await verify(DECOY, normalized(password))
  return false
}

/** Hashes of earlier versions: `scrypt$N$r$p$salt$hash`, salt and hash in base64. */
async function matchesScrypt(password: string, stored: string): Promise<boolean> {
  const [, N, r, p, salt = '', encoded = ''] = stored.split('$')
  const expected = Buffer.from(encoded, 'base64')
  const options = { N: Number(N), r: Number(r), p: Number(p), maxmem: 256 * 1024 * 1024 }
  const derived = await derive(normalized(password), Buffer.from(salt, 'base64'), expected.length, options)
  return timingSafeEqual(derived, expected)
}

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)

/** Keyboards encode the same character differently. */
const normalized = (password: string) => password.normalize('NFKC')
