import { diffArrays } from 'diff'

/** Lines that differ; the time for a difference grows with their square. */
const MAX_EDITS = 2_000
/** Characters of a text: a longer one takes too long in the request of a page. */
const MAX_LENGTH = 128 * 1024

/** Lines `from` to `to` (exclusive) of the common text, and what stands in their place. */
interface Edit {
  from: number
  to: number
  lines: string[]
}

/**
 * What two authors made of one text, together; undefined if they changed the same lines or lines beside each other, or
 * too many of them, or the text is long.
 */
export function mergeTexts(base: string, mine: string, theirs: string): string | undefined {
  if ([base, mine, theirs].some(({ length }) => length > MAX_LENGTH)) return undefined
  const lines = base.split('\n')
  const [own, others] = [mine, theirs].map((text) => editsOf(lines, text.split('\n')))
  if (!own || !others) return undefined
  const further = others.filter((edit) => !own.some((one) => isSame(one, edit)))
  if (further.some((edit) => own.some((one) => one.from <= edit.to && edit.from <= one.to))) return undefined
  for (const { from, to, lines: put } of [...own, ...further].sort((a, b) => b.from - a.from))
    lines.splice(from, to - from, ...put)
  return lines.join('\n')
}

const isSame = (a: Edit, b: Edit) =>
  a.from === b.from && a.to === b.to && a.lines.join('\n') === b.lines.join('\n')

function editsOf(before: string[], after: string[]): Edit[] | undefined {
  const changes = diffArrays(before, after, { maxEditLength: MAX_EDITS })
  if (!changes) return undefined
  const edits: Edit[] = []
  let at = 0
  let open: Edit | undefined
  for (const { added, removed, value } of changes) {
    if (!added && !removed) {
      open = undefined
      at += value.length
      continue
    }
    if (!open) {
      open = { from: at, to: at, lines: [] }
      edits.push(open)
    }
    if (added) open.lines.push(...value)
    else {
      at += value.length
      open.to = at
    }
  }
  return edits
}
