/**
 * `start` and `end` mark the words of a query in a highlight; `less` and `greater` replace `<` and `>` there. `clean`
 * removes all four from passages.
 */
export const MARKS = { start: '\uE000', end: '\uE001', less: '\uE002', greater: '\uE003' } as const

/** Invisible characters inside of words (soft hyphens, zero-width spaces), and MARKS. */
const DROPPED = /[\u00AD\u200B\uFEFF\uE000-\uE003]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: all but tab and line feed
const CONTROLS = /[\0-\x08\x0B-\x1F\x7F]/g

/** A text with line feeds as its only line breaks, and without invisible characters. */
export const clean = (text: string): string =>
  text.replaceAll('\r\n', '\n').replaceAll('\r', '\n').replace(DROPPED, '').replace(CONTROLS, ' ')

/** Removes the empty lines around a text; the indentation of its first line stays. */
export function trimLines(text: string): string {
  const end = text.trimEnd()
  let start = 0
  for (
    let line = end.indexOf('\n');
    line >= 0 && end.slice(start, line).trim() === '';
    line = end.indexOf('\n', start)
  )
    start = line + 1
  return end.slice(start)
}
