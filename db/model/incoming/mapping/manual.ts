import { stepsOf } from '../../../../workflows/shared/paths.ts'
import type { Condition, MappingRule, TargetKind } from '../types.ts'
import { textAt, valueAt } from './path.ts'
import { compiled, readable } from './patterns.ts'
import { fieldOf, typed } from './targets.ts'
import { MAX_TEXT, transformed } from './transforms.ts'
import type { Mapped } from './types.ts'

/** Applies the rules in order. The last rule for a field wins; tags are united. Pure. */
export function mapManually(payload: unknown, rules: MappingRule[], kind: TargetKind): Mapped {
  const fields: Record<string, unknown> = {}
  const nested: Record<string, Record<string, unknown>> = {}
  const sources: Record<string, string> = {}
  const tags: string[] = []
  const extra: Pick<Mapped, 'company_name' | 'note'> = {}
  for (const rule of rules) {
    const text = textOf(rule, payload)
    if (text === '') continue
    const { to, from } = rule
    sources[to] = from
    const [outer = '', inner] = to.split('.')
    if (to === 'tags') tags.push(...text.split(',').map((tag) => tag.trim()))
    else if (to === 'company_name') extra.company_name = text
    else if (to === 'note_content') extra.note = text
    else if (inner === undefined) fields[to] = typed(text, fieldOf(to, kind))
    else {
      nested[outer] ??= {}
      nested[outer][inner] = outer === 'custom_fields' ? original(rule, payload, text) : text
    }
  }
  if (tags.length > 0) fields.tags = [...new Set(tags.filter(Boolean))]
  return { fields: { ...fields, ...nested }, sources, ...extra, ...listWarning(payload, sources) }
}

/** Says that the rules do not read every record of a body that is a list. */
function listWarning(payload: unknown, sources: Mapped['sources']): Pick<Mapped, 'warnings'> {
  const items = valueAt(payload, 'items')
  const isList = Array.isArray(items) && Object.keys(payload as object).length === 1
  if (!isList || items.length < 2 || !items.every((item) => typeof item === 'object')) return {}
  const read = new Set(Object.values(sources).map((path) => stepsOf(path)[1]))
  const missed = items.length - read.size
  return missed > 0 ? { warnings: [`items has ${items.length} records: the rules read ${read.size}`] } : {}
}

/** The transformed text; empty if the rule maps nothing. */
function textOf(rule: MappingRule, payload: unknown): string {
  if (rule.when && !holds(rule.when, payload)) return ''
  const given = rule.to === 'tags' ? listAt(payload, rule.from) : textAt(payload, rule.from)
  if (rule.skip_if !== undefined && given !== '' && matches(rule.skip_if, given)) return ''
  const text = rule.transforms.reduce(
    (done, transform) => transformed(done, transform, payload).slice(0, MAX_TEXT),
    given.slice(0, MAX_TEXT),
  )
  return text === '' ? (rule.default ?? '') : text
}

/** Tags can be a list. */
function listAt(payload: unknown, path: string): string {
  const value = valueAt(payload, path)
  return Array.isArray(value)
    ? value.filter((one) => typeof one !== 'object').join(',')
    : textAt(payload, path)
}

/** Whether a condition on the payload holds. */
export function holds(condition: Condition, payload: unknown): boolean {
  const text = textAt(payload, condition.path)
  switch (condition.is) {
    case 'present':
      return text !== ''
    case 'absent':
      return text === ''
    case 'equal':
      return text === condition.to
    case 'not_equal':
      return text !== condition.to
    case 'matching':
      return matches(condition.to, text)
  }
}

/** Looks at the part of the text that patterns read. */
const matches = (pattern: string, text: string) => compiled(pattern).matcher(readable(text)).find()

/** A custom field keeps the number or boolean of the payload, unless a transform changed it. */
function original(rule: MappingRule, payload: unknown, text: string): unknown {
  const value = valueAt(payload, rule.from)
  return typeof value !== 'object' && String(value) === text ? value : text
}
