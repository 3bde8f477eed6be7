import { z } from 'zod'

/** The sender or a recipient of a mail: an address, and a name that may be empty. */
export interface Mailbox {
  name: string
  address: string
}

const address = z.email().max(254)

/** Control characters would end a header and begin another one. */
const NAMED = /^"?([^"<>\p{Cc}]{0,200}?)"?\s*<([^<>\s]{1,254})>$/u

/** A list of addresses in one text: NAMED would take the first ones for the name of the last one. */
const LISTED = /@[^\s,;]+\s*[,;]/

/** Parses `ada@example.com` or `Ada Lovelace <ada@example.com>`; undefined for any other text. */
export function parseMailbox(text: string): Mailbox | undefined {
  const trimmed = text.trim()
  const [, name = '', inner = trimmed] = NAMED.exec(trimmed) ?? []
  if (LISTED.test(name)) return undefined
  return address.safeParse(inner).success ? { name: name.trim(), address: inner } : undefined
}

export const NOT_A_MAILBOX =
  'must be an email address, such as ada@example.com or Ada Lovelace <ada@example.com>'
