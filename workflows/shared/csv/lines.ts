/** Counts line ends. A CRLF that is split between two pieces counts twice. */
export function countLines(text: Buffer): number {
  let lines = 0
  for (let at = 0; at < text.length; at++)
    if (text[at] === LF || (text[at] === CR && text[at + 1] !== LF)) lines++
  return lines
}

const LF = 10
const CR = 13
