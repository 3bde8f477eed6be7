/** Temporal's limit is 400 (`limit.userMetadataSummarySize`); a server that insists refuses what the summary is of. */
const MAX_BYTES = 390

/** A text as the summary of something in the Temporal UI: cut between characters where its UTF-8 is too long. */
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
