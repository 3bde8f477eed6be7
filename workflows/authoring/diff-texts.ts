import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'

/** Lines that are added and removed; the time for a difference grows with their square: some 0.4 s at this number. */
const MAX_EDITS = 3_000

/** A unified diff, empty if the texts are equal; undefined if they differ in too many lines. */
export function diffTexts(
  before: { name: string; text: string },
  after: { name: string; text: string },
): string | undefined {
  if (before.text === after.text) return ''
  return createTwoFilesPatch(before.name, after.name, before.text, after.text, undefined, undefined, {
    context: 3,
    maxEditLength: MAX_EDITS,
    headerOptions: FILE_HEADERS_ONLY,
  })
}
