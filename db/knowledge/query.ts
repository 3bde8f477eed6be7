import { KNOWLEDGE } from '../../workflows/limits.ts'

/** A query in the syntax of websearch_to_tsquery. */
export interface Query {
  /** As it was given: every word must occur. */
  all: string
  /** One of these words must occur, and `required` must hold; undefined if the query has a single word. */
  any: string | undefined
  /** The phrases and the excluded words; may be empty. */
  required: string
}

export type QueryProblem = 'empty' | 'too_long'

/**
 * Reads the words of a query. `any` is for questions in a sentence, which no passage answers with all of their words:
 * phrases remain required, and excluded words excluded.
 */
export function parseQuery(text: string): Query | QueryProblem {
  const terms = [...text.matchAll(/(-?)"([^"]*)"?|(\S+)/g)].map(([term, , phrase, word]) => ({
    term,
    isPhrase: phrase !== undefined,
    isExcluded: term.startsWith('-'),
    isEmpty: !/[\p{L}\p{N}]/u.test(phrase ?? word ?? ''),
  }))
  const found = terms.filter(({ isEmpty }) => !isEmpty)
  if (found.every(({ isExcluded }) => isExcluded)) return 'empty'
  if (found.length > KNOWLEDGE.words) return 'too_long'
  const words = found
    .filter(({ isPhrase, isExcluded, term }) => !isPhrase && !isExcluded && term.toLowerCase() !== 'or')
    .map(({ term }) => term)
  const required = found.filter(({ isPhrase, isExcluded }) => isPhrase || isExcluded)
  return {
    all: text,
    any: words.length > 1 ? words.join(' or ') : undefined,
    required: required.map(({ term }) => term).join(' '),
  }
}
