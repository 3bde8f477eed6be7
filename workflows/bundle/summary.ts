/** Below Temporal's limit of 400 (`limit.userMetadataSummarySize`): a server may refuse a longer summary. */
const MAX_BYTES = 390

/** Cuts a text, between characters, to the size of a summary in the Temporal UI. */
export function summaryOf(text: string): string {
  let bytes = 0
  let summary = ''
  for (const character of text) {
    bytes += bytesOf(character.codePointAt(0)!)
    if (bytes > MAX_BYTES) return `${summary}…`
    summary += character
  }
  return summary
}

const bytesOf = (codePoint: number) =>
  codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4
