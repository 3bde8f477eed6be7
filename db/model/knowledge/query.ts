import { KNOWLEDGE } from '../../../workflows/shared/limits.ts'

/** A query in the syntax of websearch_to_tsquery. */
export interface Query {
  /** The query as written: every word must occur. */
  all: string
  /** One of these words must occur, and `required` must match; undefined if the query has a single word. */
  any: string | undefined
  /** The phrases and the excluded words; may be empty. */
  required: string
}

/**
 * Parses a full-text query. `any` is for questions, whose words no passage contains all: phrases remain required, and
 * excluded words excluded.
 * @returns undefined if the query has no word that is not excluded.
 */
export function parseQuery(text: string): Query | undefined {
  const terms = [...text.matchAll(/(-?)"([^"]*)"?|(\S+)/g)].map(([term, , phrase, word]) => ({
    term,
    isPhrase: phrase !== undefined,
    isExcluded: term.startsWith('-'),
    isEmpty: !/[\p{L}\p{N}]/u.test(phrase ?? word ?? ''),
  }))
  const found = terms.filter(({ isEmpty }) => !isEmpty)
  if (found.every(({ isExcluded }) => isExcluded)) return undefined
  const words = found
    .filter(({ isPhrase, isExcluded, term }) => !isPhrase && !isExcluded && term.toLowerCase() !== 'or')
    .map(({ term }) => term)
  const required = found.filter(({ isPhrase, isExcluded }) => isPhrase || isExcluded)
  return {
    all: text,
    any: words.length > 1 ? telling(words).join(' or ') : undefined,
    required: required.map(({ term }) => term).join(' '),
  }
}

/** The longest words, if there are too many, such as in a letter: common words are short. */
function telling(words: string[]): string[] {
  const distinct = [...new Set(words.map((word) => word.toLowerCase()))]
  return distinct.toSorted((a, b) => b.length - a.length).slice(0, KNOWLEDGE.words)
}
