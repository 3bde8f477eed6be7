import {
  isMap,
  isPair,
  isScalar,
  type Pair,
  parse,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml'
import type { Finding } from '../language/definition.ts'

/** What hints and codes tell of a finding. */
type Hinted = Pick<Finding, 'hint' | 'path' | 'line' | 'column'> & { code: string }

/** The wordings with one meaning. `one of …` leaves the choice to the author. */
const APPLICABLE = [
  /^did you mean .+\?$/,
  /^write `[\s\S]*`( instead of `[\s\S]*`)?$/,
  /^add `[^`…]*`$/,
  /^replace it by `[\s\S]*`$/,
  /^remove it$/,
  /^remove it, and write `config: [\s\S]*`$/,
]

/** Whether `applyHints` can apply the hint of a finding in YAML, and would leave nothing to the author. */
export const isApplicable = ({ code, hint = '', line }: Hinted): boolean =>
  line !== undefined && (code === 'code_fence' || APPLICABLE.some((wording) => wording.test(hint)))

/**
 * Applies every hint that a program can apply to a spec, as an agent would in one round; see `write` in
 * workflows/language/problems.ts for the wordings. Comments are kept.
 */
export function applyHints<T extends Hinted>(text: string, findings: T[]): { text: string; applied: T[] } {
  const applied: T[] = []
  const mended = withSyntax(text, findings, applied)
  const document = parseDocument(mended)
  if (document.errors.length > 0) return { text: mended, applied }
  const starts = [0, ...[...mended.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const edits = findings.flatMap((finding) => {
    const edit = editOf(document, (starts[finding.line! - 1] ?? 0) + finding.column! - 1, finding)
    return edit ? [{ finding, edit }] : []
  })
  for (const { finding, edit } of edits) {
    edit()
    applied.push(finding)
  }
  const asWritten = { lineWidth: 0, flowCollectionPadding: !/\{\S/.test(mended) }
  return { text: edits.length > 0 ? document.toString(asWritten) : mended, applied }
}

/** Corrects invalid YAML: fences, tabs, missing quotes. It starts from the end, so that positions stay valid. */
function withSyntax<T extends Hinted>(text: string, findings: T[], applied: T[]): string {
  let lines = text.split('\n')
  const fences = findings.filter(({ code }) => code === 'code_fence')
  const found = findings.filter(({ path, hint }) => path === '' && /^write `/.test(hint ?? ''))
  for (const finding of found.toSorted((a, b) => b.line! - a.line! || b.column! - a.column!)) {
    const put = /^write `([\s\S]*)`$/.exec(finding.hint!)![1]!
    const line = lines[finding.line! - 1]!
    const [before, after] = [line.slice(0, finding.column! - 1), line.slice(finding.column! - 1)]
    const written = finding.code === 'tab_indent' ? /^\s*/.exec(after)![0] : String(parse(put))
    lines[finding.line! - 1] = before + put + after.slice(written.length)
    applied.push(finding)
  }
  const [first, last] = [
    lines.findIndex((line) => line.startsWith('```')),
    lines.findLastIndex((line) => line.startsWith('```')),
  ]
  if (fences.length > 0) lines = lines.slice(first + 1, last > first ? last : undefined)
  applied.push(...fences)
  return fences.length > 0 ? `${'\n'.repeat(first + 1)}${lines.join('\n')}` : lines.join('\n')
}

type Document = ReturnType<typeof parseDocument>

function editOf(document: Document, offset: number, { hint = '', path }: Hinted): (() => void) | undefined {
  const keys = path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const parent = (): YAMLMap | undefined => {
    const node = keys.length === 1 ? document.contents : document.getIn(keys.slice(0, -1), true)
    return isMap(node) ? node : undefined
  }
  const remove = () => {
    const map = parent()
    if (map) map.items = map.items.filter(({ key }) => String((key as Scalar).value) !== keys.at(-1))
  }
  const [, meant] = /^did you mean (.+)\?$/.exec(hint) ?? /^one of ([^,]+),/.exec(hint) ?? []
  if (meant !== undefined) {
    // Quotes that were added before it on its line have moved it.
    const scalar = scalarAt(document, offset) ?? keyOf(parent(), keys.at(-1))
    return scalar && (() => Object.assign(scalar, { value: meant, type: undefined, source: undefined }))
  }
  const [, replacing] = /^replace it by `([\s\S]*)`$/.exec(hint) ?? []
  if (replacing !== undefined)
    return () => {
      remove()
      for (const [key, value] of Object.entries(parse(replacing) as object))
        document.setIn([...keys.slice(0, -1), key], document.createNode(value))
    }
  const [, better, written] = /^write `([\s\S]*)` instead of `([\s\S]*)`$/.exec(hint) ?? []
  if (better !== undefined) {
    const scalar = document.getIn(keys, true) as Scalar
    return () => {
      scalar.value = String(scalar.value).replace(written!, () => better)
    }
  }
  const [, moved] = /^remove it, and write `config: ([\s\S]*)`$/.exec(hint) ?? []
  if (moved !== undefined)
    return () => {
      const map = parent()
      remove()
      map?.set('config', document.createNode(parse(moved)))
    }
  if (hint === 'remove it' && path !== '') return remove
  const [, whole] = /^write `([\s\S]*)`$/.exec(hint) ?? []
  if (whole !== undefined && path !== '') return () => document.setIn(keys, document.createNode(parse(whole)))
  const [, added] = /^add `([^`…]*)`$/.exec(hint) ?? []
  if (added === undefined) return undefined
  const [[key, value]] = Object.entries(parse(added) as object) as [[string, unknown]]
  return () => document.setIn([...keys.slice(0, -1), key], document.createNode(value))
}

const keyOf = (map: YAMLMap | undefined, name: string | undefined) =>
  map?.items.map(({ key }) => key as Scalar).find(({ value }) => value === name)

/** The key or value that starts at an offset. */
function scalarAt(document: Document, offset: number): Scalar | undefined {
  let found: Scalar | undefined
  visit(document, {
    Pair(_, pair) {
      for (const node of [(pair as Pair).key, (pair as Pair).value])
        if (isScalar(node) && node.range?.[0] === offset) found = node
    },
    Scalar(_, node) {
      if (!isPair(node) && node.range?.[0] === offset) found = node
    },
  })
  return found
}
