import type { NodeSpec } from '../language/definition.ts'
import { referencesOf } from '../language/expressions/references.ts'
import { add, type Problem } from '../language/problems.ts'
import type { FirstOnly } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'
import { type RenderedText, renderedTexts } from './rendered-texts.ts'

/**
 * Warns where a node returns only the first page of its results and the list is looped over, summed or counted. No
 * warning where the author sets a limit or reads `has_more`.
 */
export function checkPages(lowered: Lowered): Problem[] {
  const { nodes } = lowered.definition
  const partial = new Map(
    nodes.flatMap((node): [string, FirstOnly][] => {
      const first = findNodeType(node.type)?.firstOnly(node.config)
      return first ? [[node.id, first]] : []
    }),
  )
  if (partial.size === 0) return []
  const users = new Map<string, NodeSpec | undefined>()
  for (const rendered of renderedTexts(lowered)) {
    for (const { path } of lowered.texts.readable(rendered.text)) {
      const [root, id, member, field] = path.map(String)
      const first = root === 'nodes' && member === 'output' ? partial.get(id!) : undefined
      if (first?.others.includes(field!)) partial.delete(id!)
      else if (first && field === first.list && !users.has(id!) && usesAll(lowered, rendered, id!, first))
        users.set(id!, rendered.node)
    }
  }
  return nodes.flatMap(({ id }): Problem[] => {
    const first = partial.get(id)
    if (!first || !users.has(id)) return []
    const user = users.get(id)
    return [
      {
        code: 'first_page_only',
        message: `${user ? user.id : 'an output'} uses ${first.list} of ${id} as a whole, but that has at most the first ${first.most}: more are left out without an error. If only the first are meant, write a \`limit\``,
        path: `${lowered.nodePath(id)}/config/operation`,
        node_id: id,
        hint: add(first.all),
      },
    ]
  })
}

/** Whether a text uses the list of a node otherwise than to take its first item, or to ask whether there is one. */
function usesAll(
  { texts }: Lowered,
  { text, node, configKey }: RenderedText,
  id: string,
  { list, most }: FirstOnly,
): boolean {
  const tests = node !== undefined && (configKey === undefined || findNodeType(node.type)?.compared === true)
  const compared = tests ? JSON.stringify(configKey === undefined ? text : node.config) : text
  const counts = tests || COUNT.test(text)
  // To compare the count with a small number, the first are enough.
  if (counts && !(compared.match(NUMBER) ?? []).some((number) => Number(number) >= most)) return false
  return (texts.parts(text) ?? []).some((part) => {
    if (typeof part === 'string') return false
    if (part.initial.postfix.length === 1 && TAKES_FIRST.test(part.filters.map(({ name }) => name).join()))
      return false
    return referencesOf(part, texts.parts(text)!.length === 1).some(({ path, dynamic, whole }) => {
      const [root, name, member, field, ...rest] = path.map(String)
      if (root !== 'nodes' || name !== id || member !== 'output' || field !== list || dynamic) return false
      // What a workflow hands on as a whole has no use yet.
      return (rest.length === 0 && !(whole && !node)) || rest.join() === 'size'
    })
  })
}

/** `| first`, also of the values of a field. */
const TAKES_FIRST = /^(map,)*first\b/
/** A comparison of a number of items. */
const COUNT = /\bsize\s*\)?\s*(==|!=|<=?|>=?)\s*\d/
const NUMBER = /(?<![\w.-])\d+(?![\w-])/g
