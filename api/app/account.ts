import { z } from 'zod'

/**
 * The address of an account. Only ASCII: letters of other scripts that look alike (a Cyrillic а) would make two accounts
 * that people cannot distinguish. Addresses that differ in case only are the same account.
 */
export const email = z
  .string()
  .trim()
  .max(254)
  .refine((text) => z.email().safeParse(text).success, {
    message: 'must be an email address of ASCII characters, such as ada@example.com',
    params: { hint: 'write an international domain in Punycode (xn--…)' },
  })

const MIN_PASSWORD = 12

/** A password that a user chooses. */
export const newPassword = z
  .string()
  .min(MIN_PASSWORD, `must have at least ${MIN_PASSWORD} characters`)
  .max(1_000)
  .meta({ writeOnly: true })
