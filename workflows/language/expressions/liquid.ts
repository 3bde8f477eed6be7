import { toValue, type Value } from 'liquidjs'
import { EXPRESSION } from '../../shared/limits.ts'
import { createTurns } from '../../shared/turns.ts'
import { NodeError } from '../node-error.ts'
import { pointer } from '../problems.ts'
import { hintAt } from './missing-member.ts'
import { acceptsMissing, OMITTED } from './omitted.ts'
import { ScopeContext, timezoneOf } from './scope-context.ts'
import { readsSecret, Tainted } from './secrets.ts'
import { engine, explain, hasPlaceholder, parseTemplate, type Template } from './template.ts'
import { requireOwnPath, requireSegment } from './urls.ts'

/**
 * The roots of placeholders, by name: `trigger`, `inputs`, `nodes` (`nodes.<id>.output`), `item`, `index`, `run`,
 * `org`, `env`; `secrets` only where `renderTainted` renders.
 */
export type Scope = Record<string, unknown>

export interface RenderLimits {
  /** The work of all filters, operators and ranges together: see work.ts. */
  work: number
  /** For the whole value; checked after each filter, and within filters that iterate over a list. */
  milliseconds: number
  /** Characters of all rendered text. */
  characters: number
}

const DEFAULTS: RenderLimits = { work: EXPRESSION.work, milliseconds: 500, characters: 2_000_000 }

/** The work of a placeholder itself: parsing and lookup. */
const PLACEHOLDER = 400

/**
 * Renders every placeholder in `value`, at any depth. A string that is one whole placeholder becomes the value itself,
 * with its type; in a longer text, null is empty, and objects and lists are written as JSON. A member that
 * `omit_if_empty` omits is left out. Rendered text is not rendered again, so that a record's own `{{ … }}` stays text.
 * Keys are not rendered. Throws NodeError `placeholder_error`, whose `details.path` is a JSON Pointer into `value`.
 */
export function render(value: unknown, scope: Scope, limits: Partial<RenderLimits> = {}): unknown {
  return kept(renderDeep(value, '', begin(scope, limits)))
}

/** The work of one placeholder in a text that is rendered again for another item. */
const REPEATED = 40

/**
 * Renders a text for each item of a list, which it reads as `item`, with its `index`. All items share one limit of
 * work. Yields to the event loop in between. Throws NodeError `placeholder_error`.
 */
export async function renderEach(
  text: string,
  scope: Scope,
  items: readonly unknown[],
  organizationId: string,
): Promise<string[]> {
  const rendering = begin(scope, {})
  const { parts } = explained(text, '', () => parseTemplate(text))
  const turn = createTurns(organizationId)
  const rendered: string[] = []
  for (const [index, item] of items.entries()) {
    rendered.push(explained(text, '', () => renderParts(parts, { ...scope, item, index }, rendering)))
    await turn()
  }
  return rendered
}

/** Each text has the whole time limit; all texts share the limit of work. */
function renderParts(parts: Template['parts'], scope: Scope, rendering: Rendering): string {
  const { memoryLimit } = rendering.context
  const context = Object.assign(
    new ScopeContext(scope, optionsFor(scope), { sync: true }, { liquid: engine }),
    {
      memoryLimit,
    },
  )
  const until = Date.now() + DEFAULTS.milliseconds
  const written = parts.map((part, index) => {
    if (typeof part === 'string') return part
    return inPlaceholder(parts, index, () => {
      memoryLimit.use(REPEATED)
      return textOf(evaluate(part, { ...rendering, context, until }))
    })
  })
  const text = written.join('')
  spend(rendering, text)
  return text
}

/** Renders a value, and notes what came from placeholders that read `secrets`. */
export function renderTainted(value: unknown, scope: Scope): { rendered: unknown; tainted: Tainted } {
  const tainted = new Tainted()
  return { rendered: kept(renderDeep(value, '', { ...begin(scope, {}), tainted })), tainted }
}

/** A value that is not in a mapping or a list cannot be left out. */
const kept = (value: unknown) => (value === OMITTED ? null : value)

function begin(scope: Scope, limits: Partial<RenderLimits>): Rendering {
  const { work, milliseconds, characters } = { ...DEFAULTS, ...limits }
  // One context for all placeholders, so that they share one limit.
  const context = new ScopeContext(
    scope,
    optionsFor(scope),
    { sync: true, memoryLimit: work },
    { liquid: engine },
  )
  return { context, until: Date.now() + milliseconds, characters }
}

/** Dates are written in the time zone of the organization. */
function optionsFor(scope: Scope): typeof engine.options {
  const timezoneOffset = timezoneOf(scope)
  return timezoneOffset === 'UTC' ? engine.options : { ...engine.options, timezoneOffset }
}

interface Rendering {
  context: ScopeContext
  until: number
  /** The characters that are left. */
  characters: number
  tainted?: Tainted
}

function renderDeep(value: unknown, path: string, rendering: Rendering): unknown {
  if (typeof value === 'string') return hasPlaceholder(value) ? renderText(value, path, rendering) : value
  if (Array.isArray(value)) return renderList(value, path, rendering)
  if (typeof value !== 'object' || value === null) return value
  // fromEntries defines keys; an assignment would call the setter of `__proto__`.
  const rendered = Object.entries(value).map(
    ([key, item]) => [key, renderDeep(item, `${path}${pointer(key)}`, rendering)] as const,
  )
  if (ASSOCIATION.test(path) && rendered.some(([key, item]) => key === 'id' && item === OMITTED))
    return OMITTED
  return Object.fromEntries(rendered.filter(([, item]) => item !== OMITTED))
}

/** An item of `associations`: without the id of the other record there is nothing to link. */
const ASSOCIATION = /\/associations\/\d+$/

/** Paths count the items that are kept: by them, secrets are masked in the result. */
function renderList(items: readonly unknown[], path: string, rendering: Rendering): unknown[] {
  const rendered: unknown[] = []
  for (const item of items) {
    const one = renderDeep(item, `${path}/${rendered.length}`, rendering)
    if (one !== OMITTED) rendered.push(one)
  }
  return rendered
}

function renderText(text: string, path: string, rendering: Rendering): unknown {
  return explained(text, path, () => {
    const { parts } = parseTemplate(text)
    const only = parts.length === 1 ? parts[0] : undefined
    const { tainted } = rendering
    if (only && typeof only !== 'string') {
      const value = placeholder(only, rendering)
      if (tainted && value !== OMITTED && readsSecret(only)) tainted.add(path, [{ secret: value }])
      return value
    }
    let rendered = ''
    let beginning = ''
    // The same text with a mask in place of each secret.
    const shown: (string | { secret: unknown })[] = []
    for (const [index, part] of parts.entries()) {
      const written =
        typeof part === 'string'
          ? part
          : inPlaceholder(parts, index, () => {
              const value = textOf(placeholder(part, rendering))
              if (path === '/url') requireSegment(rendered, value, parts[index + 1])
              return value
            })
      spend(rendering, written)
      rendered += written
      if (index === 0) beginning = written
      if (tainted) shown.push(typeof part !== 'string' && readsSecret(part) ? { secret: written } : written)
    }
    if (path === '/url') requireOwnPath(rendered, beginning, parts.slice(1))
    tainted?.add(path, shown)
    return rendered
  })
}

function spend(rendering: Rendering, written: string): void {
  rendering.characters -= written.length
  if (rendering.characters < 0) throw new Error('the rendered text is too large')
}

/** Throws NodeError `placeholder_error` where `work` throws. */
export function explained<T>(text: string, path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    // The surrounding text may be secret: only the placeholders are reported.
    const all = text.match(/\{\{.*?\}\}/gs) ?? []
    const failed =
      error instanceof PlaceholderFailure && error.count === all.length ? all[error.index] : undefined
    const placeholders = (failed ?? all.join(' ')).slice(0, 200)
    const reason = explain(error)
    throw new NodeError('placeholder_error', placeholders ? `${placeholders}: ${reason}` : reason, {
      details: { path },
    })
  }
}

/** The failure of one of the placeholders of a text. */
class PlaceholderFailure extends Error {
  readonly index: number
  /** The number of placeholders. */
  readonly count: number

  constructor(reason: string, index: number, count: number) {
    super(reason)
    this.index = index
    this.count = count
  }
}

/** Makes an error of `work` that of the placeholder at `index` of the parts. */
function inPlaceholder<T>(parts: Template['parts'], index: number, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const [before, all] = [parts.slice(0, index), parts].map(
      (some) => some.filter((part) => typeof part !== 'string').length,
    ) as [number, number]
    throw new PlaceholderFailure(explain(error), before, all)
  }
}

function placeholder(expression: Value, rendering: Rendering): unknown {
  try {
    rendering.context.memoryLimit.use(PLACEHOLDER)
    return evaluate(expression, rendering)
  } catch (error) {
    // Some filters name the value in their error, such as `where: secrets.x` a part of it.
    if (rendering.tainted && readsSecret(expression)) throw new Error(NOT_SHOWN)
    const hint = memberHint(error, rendering.context.environments as Scope)
    throw hint === undefined ? error : new Error(`${explain(error)}: ${hint}`)
  }
}

/** For a path of which the last member does not exist. */
function memberHint(error: unknown, scope: Scope): string | undefined {
  const [, path] = /^undefined variable: ([^,]+)/.exec(error instanceof Error ? error.message : '') ?? []
  return path === undefined ? undefined : hintAt(path.split('.'), scope)
}

const NOT_SHOWN = 'the placeholder cannot be rendered; it reads a secret, so the reason is not shown'

function evaluate(expression: Value, { context, until }: Rendering): unknown {
  const value = toValue(settle(expression.value(context, acceptsMissing(expression)), until)) ?? null
  // JSON would write null.
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('the result is not finite')
  return value
}

/** LiquidJS's toValueSync, with a check of the time limit at every step. */
function settle(value: unknown, until: number): unknown {
  if (!isGenerator(value)) return value
  let step = value.next()
  for (;;) {
    if (Date.now() > until) throw new Error('rendering takes too long')
    if (step.done) return settle(step.value, until)
    let settled: unknown
    try {
      settled = settle(step.value, until)
    } catch (error) {
      step = value.throw(error)
      continue
    }
    step = value.next(settled)
  }
}

const isGenerator = (value: unknown): value is Generator<unknown, unknown, unknown> =>
  typeof value === 'object' && value !== null && 'next' in value && typeof value.next === 'function'

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === OMITTED) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
