import { defaultOperators, type FilterImplOptions, Liquid, Output, TypeGuards, type Value } from 'liquidjs'
import { LRUCache } from 'lru-cache'
import { EXPRESSION } from '../../shared/limits.ts'
import { comparisons } from './comparisons.ts'
import { type Doubt, type Doubts, doubtIn } from './doubts.ts'
import { FILTERS } from './filters.ts'
import { foreignSign } from './foreign-signs.ts'
import { listFilters } from './list-filters.ts'
import { numberFilters } from './number-filters.ts'
import { mayOmit, omitFilters } from './omitted.ts'
import { strictFilter, valueFilters } from './strict-filters.ts'
import { timeFilters } from './time-filters.ts'
import { CHOICE, isLater, preparePlaceholder } from './tree.ts'
import { boundedFilter, boundedOperators } from './work.ts'

/** A string with placeholders, parsed: literal text and output expressions in turn. */
export interface Template {
  parts: (string | Value)[]
  /** Whether the text may be left out: it needs the engine `LATER_LANGUAGE.omission`. */
  omits?: true
  /** What does not mean what it seems to. What is stored goes on to run; `parseAuthored` refuses it. */
  doubt?: Doubt | undefined
}

/** A syntax error of a template; `message` and `hint` are for the author of the workflow. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** The message and the hint of a TemplateError, to spread into a problem. */
export function syntaxProblem(error: unknown): { message: string; hint?: string } {
  const { message, hint } = error as TemplateError
  return hint === undefined ? { message } : { message, hint }
}

/** Whether a string holds a placeholder, or a tag, which is refused. */
export const hasPlaceholder = (text: string) => text.includes('{{') || text.includes('{%')

/** A Liquid engine that supports output expressions only. */
function createEngine(): Liquid {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    // Otherwise `{{ inputs.name | default: "x" }}` would fail if the input is missing.
    lenientIf: true,
    locale: 'en',
    timezoneOffset: 0,
    parseLimit: EXPRESSION.template,
    templates: {},
    operators: { ...boundedOperators({ ...defaultOperators, ...comparisons }), ...CHOICE },
    groupedExpressions: true,
  })
  Object.assign(engine.filters, numberFilters, listFilters, timeFilters, valueFilters, omitFilters)
  for (const tag of Object.keys(engine.tags)) delete engine.tags[tag]
  const filters = engine.filters as Record<string, FilterImplOptions>
  for (const [name, filter] of Object.entries(filters))
    if (FILTERS.includes(name)) filters[name] = boundedFilter(name, strictFilter(name, filter))
    else delete filters[name]
  return engine
}

/** Shared by all organizations: it has no state and no variables; limits apply to each rendering. */
export const engine = createEngine()

/** The templates that were parsed last, by text: the body of a loop renders the same text for each item. */
const parsed = new LRUCache<string, Template>({ max: 1_000 })
/** Characters of a text that is kept. All kept templates take some 10 MB at most. */
const MAX_PARSED_TEXT = 500

/** Parses a template. Throws TemplateError. */
export function parseTemplate(text: string): Template {
  if (!hasPlaceholder(text)) return { parts: [text] }
  const template = parsed.get(text) ?? parse(text)
  if (text.length <= MAX_PARSED_TEXT) parsed.set(text, template)
  return template
}

/** The same of a text that is validated: throws TemplateError also for what does not mean what it seems to. */
export function parseAuthored(text: string): Template {
  const template = parseTemplate(text)
  if (template.doubt === undefined) return template
  throw new TemplateError(template.doubt.message, template.doubt.hint)
}

function parse(text: string): Template {
  if (text.length > EXPRESSION.template)
    throw new TemplateError(`a text with placeholders may have at most ${EXPRESSION.template} characters`)
  if (bracketDepth(text) > EXPRESSION.brackets) throw new TemplateError('brackets are nested too deeply')
  try {
    const doubts: Doubts = { inexact: [], filtered: [] }
    const parts = engine.parse(text).map((part) => {
      if (part instanceof Output) return checked(part.value, doubts)
      if (TypeGuards.isHTMLToken(part.token)) return part.token.getContent()
      throw new TemplateError('tags such as {% if %} are not supported: use {{ … }} only')
    })
    const written = parts.filter((part) => part !== '')
    return { parts: written, ...(mayOmit(written) && { omits: true }), doubt: doubtIn(doubts) }
  } catch (error) {
    throw new TemplateError(foreignSign(text) ?? explain(error))
  }
}

/** The message for an author, without LiquidJS's position: it counts from the start of the text, not of the spec. */
export function explain(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const plain = message.replace(/, line:\d+, col:\d+$/, '')
  const tag = /^tag "(.*)" not found$/.exec(plain)
  if (tag) return `tags such as {% ${tag[1]} %} are not supported: use {{ … }} only`
  if (/memory alloc limit/.test(plain))
    return 'this is too expensive: make its texts and lists smaller, or use fewer filters and placeholders'
  return plain
}

/** Reads the operators. Throws an error for the author, also for `{{ a b }}`, which LiquidJS evaluates to b. */
function checked(value: Value, doubts: Doubts): Value {
  preparePlaceholder(value, doubts)
  if (value.filters.length > EXPRESSION.filters)
    throw new TemplateError(`a placeholder may have ${EXPRESSION.filters} filters at most`)
  return value
}

/** The filters that the first engine does not have. */
const LATER_FILTERS = ['add_time', 'time_until']

/** Whether a text needs the engine `LATER_LANGUAGE.expressions`. Throws TemplateError. */
export const needsLaterEngine = (text: string): boolean =>
  parseTemplate(text).parts.some(
    (part) =>
      typeof part !== 'string' &&
      (isLater(part.initial) ||
        part.filters.some(
          ({ name, args }) =>
            LATER_FILTERS.includes(name) ||
            args.some((argument) =>
              TypeGuards.isFilteredValueToken(Array.isArray(argument) ? argument[1] : argument),
            ),
        )),
  )

/** Whether a text needs the engine `LATER_LANGUAGE.to_fixed`. */
export const usesFixed = (text: string): boolean => hasPlaceholder(text) && /\|\s*to_fixed\b/.test(text)

/** Whether a text needs the engine `LATER_LANGUAGE.format_number`. */
export const formatsNumber = (text: string): boolean =>
  hasPlaceholder(text) && /\|\s*format_number\b/.test(text)

/** Whether a text needs the engine `LATER_LANGUAGE.omission`. Throws TemplateError. */
export const mayBeOmitted = (text: string): boolean => parseTemplate(text).omits === true

function bracketDepth(text: string): number {
  let depth = 0
  let deepest = 0
  for (const character of text) {
    if (character === '[' || character === '(') deepest = Math.max(deepest, ++depth)
    else if (character === ']' || character === ')') depth = Math.max(0, depth - 1)
  }
  return deepest
}
