import { Document } from 'yaml'
import type { z } from 'zod'
import { EVENT_NAME } from '../shared/events.ts'
import { isObject } from '../shared/is-object.ts'
import { type ConfigIssue, checkConfig } from './config.ts'
import { parseDuration } from './duration.ts'
import { countValues } from './measure.ts'
import { add, meantBy, REMOVE, write } from './problems.ts'
import { cronProblems } from './schedule.ts'
import { keysAt, memberOf, type Shape, shapeOf, shapesAt } from './shapes.ts'

/**
 * The hint for an issue of a value: the text to write instead. The proposed value is checked with the schema, so that
 * no hint leads to another error at the same place. `example`: a valid value, for missing ones.
 */
export function repairHint(
  schema: z.ZodType,
  value: unknown,
  issue: ConfigIssue,
  example?: unknown,
): string | undefined {
  const { path, keys, allowed } = issue
  const shape = shapeOf(schema)
  if (keys) {
    const name = meantBy(keys[0]!, keysAt(shape, value, path))
    if (name === undefined) return undefined
    // The right key is there too: a second one of that name would replace it.
    return memberOf(valueAt(value, path), name) === undefined ? `did you mean ${name}?` : REMOVE
  }
  const at = valueAt(value, path)
  if (at === undefined)
    return missingHint(path, shapesAt(shape, value, path), allowed, valueAt(example, path))
  if (allowed && typeof at !== 'object') {
    const name = meantBy(String(at), allowed)
    if (name !== undefined) return `did you mean ${name}?`
  }
  if (path.at(-1) === 'trigger' && Array.isArray(at) && at.filter(isObject).length > 1)
    return 'a workflow has one trigger: give each other one to another workflow, which calls this one by run_workflow'
  const better = betterValue(schema, value, issue)
  if (better !== undefined) {
    const text = flowText(better)
    if (text.length <= MAX_TEXT) return write(text)
  }
  if (at === null && path.length > 0 && accepts(schema, without(value, path), path)) return REMOVE
  return allowed && allowed.length <= MAX_ALLOWED ? `one of ${allowed.join(', ')}` : undefined
}

/** A valid value to write instead, with corrected parts; undefined if none is known. */
function betterValue(schema: z.ZodType, value: unknown, { path }: ConfigIssue, depth = 0): unknown {
  if (countValues(value, MAX_VALUES) > MAX_VALUES) return undefined
  const possible = candidates(valueAt(value, path), path.at(-1), shapesAt(shapeOf(schema), value, path))
  const whole = possible.find((one) => accepts(schema, replaced(value, path, one), path))
  if (whole !== undefined || depth > 2) return whole
  const form = possible.find(
    (one) => typeof one === 'object' && accepts(schema, replaced(value, path, one), path, 'form'),
  )
  if (form === undefined) return undefined
  let rest = replaced(value, path, form)
  for (const inner of checkConfig(schema, rest)) {
    if (inner.keys || inner.path.length <= path.length || !within(inner.path, path)) continue
    const meant = inner.allowed && meantBy(String(valueAt(rest, inner.path)), inner.allowed)
    const better = meant ?? betterValue(schema, rest, inner, depth + 1)
    if (better !== undefined) rest = replaced(rest, inner.path, better)
  }
  // Wrapping an invalid text in a list or a mapping does not correct it.
  const text = valueAt(value, path)
  const isWrapped = typeof text === 'string' && Object.values(form as object).includes(text)
  return isWrapped && !accepts(schema, rest, path) ? undefined : valueAt(rest, path)
}

/** Whether one path leads to the other, or into it. */
const within = (path: readonly PropertyKey[], outer: readonly PropertyKey[]) =>
  path.every((key, index) => index >= outer.length || key === outer[index])

const MAX_TEXT = 2_000
/** Values in a value that is corrected: it is checked whole with each candidate, for each of up to 200 findings. */
const MAX_VALUES = 300
const MAX_ALLOWED = 30

/** A value as YAML in one line. */
export const flowText = (value: unknown): string =>
  new Document(value).toString({ collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 }).trim()

function missingHint(
  path: readonly PropertyKey[],
  shapes: Shape[],
  allowed: string[] | undefined,
  example: unknown,
): string | undefined {
  const key = path.at(-1)
  if (typeof key !== 'string') return undefined
  const value = example ?? shapes.flatMap(({ examples = [] }) => examples)[0]
  // An example reads what other workflows have: it shows the form, but copying it would not be what is meant.
  const reads = flowText(value ?? null).match(/\{\{\s*(?!secrets\b)[a-z]+/)
  if (reads) return `${add(`${key}: …`)}, such as ${flowText(value)}`
  if (value !== undefined) return add(`${key}: ${flowText(value)}`)
  const names = allowed ?? shapes.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]))
  return names.length > 0 && names.length <= MAX_ALLOWED
    ? `add \`${key}\`, one of ${names.join(', ')}`
    : undefined
}

/** What the author may have meant by an invalid value, the most likely first. */
function candidates(value: unknown, key: PropertyKey | undefined, shapes: Shape[]): unknown[] {
  const first = shapes.flatMap(({ properties = {}, required = [] }) => [
    ...Object.keys(properties).slice(0, 1),
    ...required,
  ])
  const inMapping = typeof value === 'object' ? [] : [...new Set(first)].map((name) => ({ [name]: value }))
  const examples = shapes
    .flatMap(({ examples = [] }) => examples)
    .filter((one) => typeof one === 'object' && typeof value !== 'object')
  const ofTrigger = key === 'trigger' ? triggers(value) : []
  return [...ofTrigger, ...ofValue(value, key), ...inMapping, ...examples]
}

/** The settings of `paginate` that are paths in the answer. */
const ANSWER_PATHS = ['items', 'next', 'path']

function ofValue(value: unknown, key: PropertyKey | undefined): unknown[] {
  if (value === null) return key === 'next' ? ['end'] : []
  if (typeof value === 'number') return [String(value), `${value}s`, [value]]
  if (typeof value === 'boolean') return [String(value), [value]]
  if (typeof value === 'string')
    return [...ofText(value), ...(ANSWER_PATHS.includes(String(key)) ? [`body.${value.trim()}`] : [])]
  if (Array.isArray(value)) return ofList(value)
  return [[value]]
}

const WORDS: Record<string, boolean> = {
  yes: true,
  on: true,
  true: true,
  no: false,
  off: false,
  false: false,
}

function ofText(text: string): unknown[] {
  const trimmed = text.trim()
  const lower = trimmed.toLowerCase()
  const duration = durationOf(lower)
  return [
    ...(duration === undefined ? [] : [duration]),
    ...(/^-?\d+(\.\d+)?$/.test(trimmed) ? [Number(trimmed)] : []),
    ...(Object.hasOwn(WORDS, lower) ? [WORDS[lower]] : []),
    trimmed,
    lower,
    trimmed.toUpperCase(),
    ...(/^-?\d{1,3}([,']\d{3})+(\.\d+)?$/.test(trimmed) ? [trimmed.replaceAll(/[,']/g, '')] : []),
    ...(/^[\w-]+(\.[\w-]+)+(:\d+)?(\/\S*)?$/.test(trimmed) ? [`https://${trimmed}`] : []),
    ...countryOf(lower),
    trimmed.replaceAll(/[/\\]+/g, '_'),
    lower.replaceAll(/[^a-z0-9]+/g, '_'),
    [text],
    ...(/[,;]/.test(text) ? [text.split(/[,;]/).map((part) => part.trim())] : []),
  ]
}

/** The code of a country by its English name. */
function countryOf(name: string): string[] {
  if (name.length < 4 || name.length > 50) return []
  countries ??= new Map(countryCodes().map((code) => [COUNTRY_NAMES.of(code)!.toLowerCase(), code]))
  return [countries.get(name) ?? []].flat()
}

const COUNTRY_NAMES = new Intl.DisplayNames('en', { type: 'region' })

/** Computed at the first use: all two-letter codes that have a name. */
let countries: ReadonlyMap<string, string> | undefined
function countryCodes(): string[] {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  return letters
    .flatMap((first) => letters.map((second) => first + second))
    .filter((code) => COUNTRY_NAMES.of(code) !== code)
}

/** `30 sec`, `5 minutes`, `1 hour`, `2 weeks`, `PT5M`, `90` (seconds). */
function durationOf(text: string): string | undefined {
  const iso = /^p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?$/.exec(text)
  if (iso) {
    const parts = ['d', 'h', 'm', 's'].flatMap((unit, index) =>
      iso[index + 1] ? [`${iso[index + 1]}${unit}`] : [],
    )
    return parts.length === 1 ? parts[0] : undefined
  }
  const [, count, unit = 's'] =
    /^(\d{1,9})\s*(milliseconds?|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)?$/.exec(
      text,
    ) ?? []
  if (count === undefined) return undefined
  if (unit.startsWith('w')) return `${Number(count) * 7}d`
  const short = unit.startsWith('ms') || unit.startsWith('mil') ? 'ms' : unit[0]!
  return parseDuration(`${count}${short}`) === undefined ? undefined : `${Number(count)}${short}`
}

/** Mappings for a list in place of one: a list of mappings with an id or with one key, of names, or of one item. */
function ofList(list: unknown[]): unknown[] {
  const found: unknown[] = list.length === 1 ? [list[0]] : []
  if (list.length === 0) return [{}]
  if (list.every((item) => typeof item === 'string'))
    return [...found, Object.fromEntries(list.map((name) => [name, 'string']))]
  if (!list.every(isObject)) return found
  for (const key of ['id', 'name', 'key'])
    if (list.every((item) => typeof item[key] === 'string')) {
      const entries = list.map(({ [key]: name, ...rest }) => [String(name), rest] as const)
      found.push(Object.fromEntries(entries))
      found.push(Object.fromEntries(entries.map(([name, rest]) => [name, rest.value])))
    }
  if (list.every((item) => Object.keys(item).length === 1)) found.push(Object.assign({}, ...list))
  return found
}

const EXAMPLE_CRON = '0 8 * * 1-5'

function triggers(value: unknown): unknown[] {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every((item) => typeof item === 'string' && EVENT_NAME.test(item)))
      return [{ type: 'event', events: value }]
    return value.length === 1 ? [value[0], ...triggers(value[0])] : []
  }
  if (typeof value === 'string') {
    if (value === 'schedule' || value === 'cron') return [{ type: 'schedule', cron: EXAMPLE_CRON }]
    if (value === 'event') return [{ type: 'event', events: ['contact.created'] }]
    if (EVENT_NAME.test(value)) return [{ type: 'event', events: [value] }]
    return cronProblems(value).length === 0 ? [{ type: 'schedule', cron: value }] : []
  }
  if (!isObject(value)) return []
  const { type: _, ...rest } = value
  const [[name, inner] = ['', undefined]] = Object.entries(value)
  if (rest.cron !== undefined) return [{ ...rest, type: 'schedule' }]
  const { event, events = event, ...others } = rest
  if (events !== undefined) return [{ type: 'event', events: [events].flat(), ...others }]
  if (isObject(inner)) return [{ type: name, ...inner }, ...triggers(inner)]
  return []
}

/** Whether a schema accepts the value at a path, or at least its form. */
function accepts(
  schema: z.ZodType,
  value: unknown,
  path: readonly PropertyKey[],
  what: 'whole' | 'form' = 'whole',
): boolean {
  return checkConfig(schema, value).every(
    (issue) =>
      (issue.keys && issue.path.length < path.length) ||
      (what === 'form' && issue.path.length > path.length) ||
      !within(issue.path, path),
  )
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => memberOf(at, key), value)

/** The value with another one at a path. */
export function replaced(value: unknown, [key, ...rest]: readonly PropertyKey[], by: unknown): unknown {
  if (key === undefined) return by
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === String(key) ? replaced(item, rest, by) : item))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, name === key ? replaced(item, rest, by) : item]),
  )
}

function without(value: unknown, path: readonly PropertyKey[]): unknown {
  const parent = path.slice(0, -1)
  const mapping = valueAt(value, parent)
  if (!isObject(mapping)) return value
  const { [String(path.at(-1))]: _, ...rest } = mapping
  return replaced(value, parent, rest)
}
