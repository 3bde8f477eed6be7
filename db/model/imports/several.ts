/** Cells with several addresses or numbers, as other systems write them. */

const BETWEEN = /\s*(?:;|\||:::|\r?\n| \/ )\s*/

/** The addresses of a cell, with the name that it gives the first: `Ada <ada@x.de>; ada@y.de`. */
export function readEmails(cell: string): { name?: string; emails: string[] } {
  // A comma is between addresses only: `Lovelace, Ada <ada@x.de>` has one in the name.
  const parts = cell
    .split(BETWEEN)
    .flatMap((part) => (/,.*@.*,|@[^<>]*,.*@/.test(part) ? part.split(/\s*,\s*/) : [part]))
  const read = parts
    .filter((part) => part.trim() !== '')
    .map((part) => ADDRESS.exec(part.trim())?.slice(1) ?? ['', part.trim()])
  const name = read[0]?.[0]?.replaceAll('"', '').trim()
  const emails = [...new Map(read.map(([, email]) => [email!.toLowerCase(), email!])).values()]
  return { ...(name && !name.includes('@') && { name }), emails }
}

const ADDRESS = /^(.*?)\s*<\s*(?:mailto:)?([^<>\s]+@[^<>\s]+)\s*>$/

/** The numbers of a cell. It has several only if each part is a whole number: `030/5551234; ext=5` is one. */
export const readPhones = (cell: string): string[] => [
  ...new Set(wholeNumbers(cell.trim(), BETWEEN).flatMap((part) => wholeNumbers(part, /\s*[,/]\s*/))),
]

function wholeNumbers(text: string, separator: RegExp): string[] {
  const parts = text.split(separator).filter(Boolean)
  return parts.every((part) => part.replaceAll(/\D/g, '').length >= 7) ? parts : [text]
}
