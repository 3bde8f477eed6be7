/** Controls, marks of direction, and characters of addresses and URLs. */
const UNSAFE = /[\p{Cc}\p{Cf}\u2028\u2029@<>"/\\:]+/gu
/** A dot within a word, which mail programs take for a domain and make a link. */
const DOT = /[.\u3002\uFF0E\uFF61](?=[\p{L}\p{N}])/gu

/** A name that a tenant chose as one line of plain words, which no mail program makes a link or an address. */
export const plainName = (text: string): string =>
  text.replace(UNSAFE, ' ').replace(DOT, ' ').replaceAll(/\s+/g, ' ').trim()
