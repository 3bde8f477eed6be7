import type { NodeType } from './define.ts'
import { meantType, nodeTypes } from './index.ts'

/**
 * The node types that a search finds, the best first: the type that the text names, also by its name in other products;
 * types with all words in their names; types with all words in their descriptions too.
 */
export function searchNodeTypes(search: string): NodeType[] {
  const words = wordsOf(search)
  if (words.length === 0) return Object.values(nodeTypes)
  const meant = meantType(words.join('_'))
  const rank = (type: NodeType): number => {
    if (type === meant) return 0
    const names = wordsOf([type.type, type.title, type.category, ...type.alsoCalled].join(' '))
    if (words.every((word) => names.some((name) => name.startsWith(word)))) return 1
    const all = [...names, ...wordsOf(type.description)]
    return words.every((word) => all.some((name) => name.startsWith(word))) ? 2 : NONE
  }
  const ranked = Object.values(nodeTypes).map((type) => ({ type, rank: rank(type) }))
  return ranked
    .filter((one) => one.rank !== NONE)
    .sort((a, b) => a.rank - b.rank)
    .map(({ type }) => type)
}

const NONE = 3

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z0-9]+/g) ?? []
