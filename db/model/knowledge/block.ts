/** A part of a document: a heading of level 1 to 6, or a paragraph (level 0). */
export interface Block {
  level: number
  text: string
}

/** Maximum number of characters of a heading; the rest is cut off. */
const MAX_HEADING = 200

export const heading = (level: number, text: string): Block => ({ level, text: text.slice(0, MAX_HEADING) })

export const paragraph = (text: string): Block => ({ level: 0, text })
