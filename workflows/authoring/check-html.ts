import { type Problem, pointer } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { addFilter, type ForeignTexts, isAnyText, type Openness } from './foreign-texts.ts'
import type { Lowered } from './lower.ts'

const IN_HTML: Openness = {
  // After these a text has no signs of HTML, or is meant as HTML.
  safe: [
    'escape',
    'escape_once',
    'strip_html',
    'xml_escape',
    'url_encode',
    'date',
    'format_number',
    'to_fixed',
  ],
  isFree: isAnyText,
  within: '<',
}

/** Warns about texts of others in HTML: what looks like a tag in a name is one, such as a link of a stranger. */
export function checkHtml({ definition, nodePath }: Lowered, foreign: ForeignTexts): Problem[] {
  const reported = new Set<string>()
  return definition.nodes.flatMap((node) =>
    (findNodeType(node.type)?.html ?? []).flatMap((key): Problem[] => {
      const text = node.config[key]
      const open = typeof text === 'string' ? foreign.firstIn(node, [key], text, IN_HTML) : undefined
      if (!open) return []
      const path = `${nodePath(open.node.id)}/config${pointer(...open.path)}`
      // Two mails can have the same text of another node.
      if (reported.has(path)) return []
      reported.add(path)
      const through = open.node === node ? '' : `, by ${node.id}`
      return [
        {
          code: 'unescaped_html',
          message: `${open.written.slice(0, 100)} is written into HTML as it is${through}: tags in it would be tags of the mail`,
          path,
          node_id: open.node.id,
          hint: () => addFilter(open.written, 'escape'),
        },
      ]
    }),
  )
}
