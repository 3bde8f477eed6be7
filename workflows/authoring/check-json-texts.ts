import { type Problem, write } from '../language/problems.ts'
import { flowText } from '../language/repair.ts'
import { kindsOf, optionsOf } from '../language/value-types.ts'
import { findNodeType } from '../nodes/index.ts'
import { isAnyText } from './foreign-texts.ts'
import type { Lowered } from './lower.ts'
import type { Types } from './types.ts'

const PLACEHOLDER = /\{\{[^{}]*\}\}/g
/** The roots of values that the author does not choose. */
const ROOTS = ['trigger', 'inputs', 'item', 'nodes', 'previous']
/** The filters after which a text has neither quotes nor line breaks. */
const SAFE = ['json', 'url_encode', 'cgi_escape', 'base64_encode', 'slugify', 'sha256', 'date', 'to_fixed']

/**
 * Warns about a body that is JSON written as a text, with placeholders in it: a quote or a line break in a value makes
 * it another body, or none.
 */
export function checkJsonTexts({ definition, texts, nodePath }: Lowered, types: Types): Problem[] {
  return definition.nodes.flatMap((node): Problem[] => {
    const { body } = node.config
    if (typeof body !== 'string' || !findNodeType(node.type)?.effects.includes('http')) return []
    const json = /^\s*(?:\[|\{(?!\{))/.test(body) ? readJson(body) : undefined
    const open = json?.placeholders.find(({ written, isBare }) => {
      const [part] = texts.parts(written) ?? []
      if (!part || typeof part === 'string' || part.filters.some(({ name }) => SAFE.includes(name)))
        return false
      if (!texts.readable(written).some(({ path: [root] }) => ROOTS.includes(String(root)))) return false
      const type = types.ofText(written, { reader: node })
      return isBare ? (kindsOf(type)?.includes('string') ?? true) : optionsOf(type).some(isAnyText)
    })
    if (!json || !open) return []
    return [
      {
        code: 'json_as_text',
        message: `${open.written.slice(0, 100)} is put into JSON as it is: a quote or a line break in it breaks the body`,
        path: `${nodePath(node.id)}/config/body`,
        node_id: node.id,
        hint: () => hintFor(json.value),
      },
    ]
  })
}

const MOST_SHOWN = 1_000

function hintFor(value: unknown): string {
  const better = write(flowText(value))
  return better.length > MOST_SHOWN
    ? 'write the body as a mapping, which is sent as JSON; or each value without quotes around it, as `{{ … | json }}`'
    : better
}

interface Placed {
  written: string
  /** It is a value itself, without quotes around it. */
  isBare: boolean
}

/** What stands for a placeholder while the text is parsed, with its index. */
const MARK = /\uE000(\d+)\uE001/g

/** The value of a JSON text with placeholders in it; undefined if it is none. */
function readJson(text: string): { value: unknown; placeholders: Placed[] } | undefined {
  const placeholders: Placed[] = []
  let json = ''
  let from = 0
  let isText = false
  for (const { 0: written, index } of text.matchAll(PLACEHOLDER)) {
    const literal = text.slice(from, index)
    isText = endsInText(literal, isText)
    const mark = `\uE000${placeholders.length}\uE001`
    json += literal + (isText ? mark : JSON.stringify(mark))
    placeholders.push({ written, isBare: !isText })
    from = index + written.length
  }
  try {
    const value: unknown = JSON.parse(json + text.slice(from))
    return { value: typeof value === 'object' ? restored(value, placeholders) : undefined, placeholders }
  } catch {
    return undefined
  }
}

/** Whether a JSON text is within quotes at its end. `isText`: whether it is at its start. */
function endsInText(literal: string, isText: boolean): boolean {
  let inside = isText
  for (let index = 0; index < literal.length; index++) {
    if (inside && literal[index] === '\\') index += 1
    else if (literal[index] === '"') inside = !inside
  }
  return inside
}

/** A value with its placeholders, which need no filter `json` where they are values. */
function restored(value: unknown, placeholders: readonly Placed[]): unknown {
  if (typeof value === 'string')
    return value.replaceAll(MARK, (_, index) => {
      const { written, isBare } = placeholders[Number(index)]!
      return isBare ? written.replace(/\s*\|\s*json\s*\}\}$/, ' }}') : written
    })
  if (Array.isArray(value)) return value.map((item) => restored(item, placeholders))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      String(restored(key, placeholders)),
      restored(item, placeholders),
    ]),
  )
}
