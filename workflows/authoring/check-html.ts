import { type Problem, pointer, writeInstead } from '../language/problems.ts'
import { optionsOf, type ValueType } from '../language/value-types.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'
import type { Types } from './types.ts'

/** The roots of values that people outside of the organization write. */
const FOREIGN = ['trigger', 'inputs', 'item']
/** The filters after which a text has no signs of HTML, or is meant as HTML. */
const ESCAPED = ['escape', 'escape_once', 'strip_html', 'url_encode', 'date', 'format_number', 'to_fixed']
const PLACEHOLDER = /\{\{[^{}]*\}\}/g

/** Warns about texts of others in HTML: what looks like a tag in a name is one, such as a link of a stranger. */
export function checkHtml({ definition, texts, nodePath }: Lowered, types: Types): Problem[] {
  return definition.nodes.flatMap((node) =>
    (findNodeType(node.type)?.html ?? []).flatMap((key): Problem[] => {
      const text = node.config[key]
      if (typeof text !== 'string' || !text.includes('<')) return []
      const open = (text.match(PLACEHOLDER) ?? []).find((one) => {
        const foreign = texts.readable(one).some(({ path: [root] }) => FOREIGN.includes(String(root)))
        const [part] = texts.parts(one) ?? []
        if (!foreign || !part || typeof part === 'string') return false
        if (part.filters.some(({ name }) => ESCAPED.includes(name))) return false
        return optionsOf(types.ofText(one, { reader: node })).some(isFree)
      })
      if (open === undefined) return []
      return [
        {
          code: 'unescaped_html',
          message: `${open.slice(0, 100)} is written into HTML as it is: tags in it would be tags of the mail`,
          path: `${nodePath(node.id)}/config${pointer(key)}`,
          node_id: node.id,
          hint: writeInstead(open.replace(/\s*\}\}$/, ' | escape }}'), open),
        },
      ]
    }),
  )
}

/** Whether a value can be any text. */
const isFree = ({ type, format, enum: values, pattern, ...rest }: ValueType & { pattern?: string }) =>
  (type === undefined && values === undefined && Object.keys(rest).length === 0) ||
  (type === 'string' && format === undefined && values === undefined && pattern === undefined)
