import { defineField, meantBy, type Problem, writeInstead } from '../language/problems.ts'
import { pathText } from '../language/reference-hints.ts'
import type { Origin } from '../language/shapes.ts'
import { nearest } from '../shared/nearest.ts'
import type { Mistake } from './mistake.ts'
import { correction, known } from './path-hints.ts'

type Described = Pick<Problem, 'code' | 'message' | 'hint'>

/** The finding for a mistake in an expression. */
export function describeMistake(mistake: Mistake): Described {
  const { origin } = mistake
  const described = describe(mistake)
  return origin ? { ...described, code: origin.code } : described
}

function describe(mistake: Mistake): Described {
  switch (mistake.kind) {
    case 'path':
      return wrongPath(mistake)
    case 'field': {
      const { filter, field, key, names, within } = mistake
      return {
        code: 'unknown_field',
        message: `${filter} names the field ${field.slice(0, 100)}, which the items do not have`,
        hint: () => {
          const meant = within ?? meantBy(key, names)
          const better = field.split('.').map((one) => (one === key ? meant : one))
          return meant === undefined ? oneOfThese(names) : writeInstead(better.join('.'), field)
        },
      }
    }
    case 'comparison': {
      const { value, allowed } = mistake
      return {
        code: 'impossible_comparison',
        message: `the value is never ${JSON.stringify(value.slice(0, 100))}: it is one of ${listed(allowed)}`,
        hint: () => {
          const custom = /^custom_fields\.([\w-]+)$/.exec(value)?.[1]
          // `trigger.changed` has the names of fields; of custom fields it does not say which.
          if (custom !== undefined && allowed.includes('custom_fields'))
            return `test that they changed, and compare the values: \`trigger.changed contains "custom_fields" and trigger.previous.custom_fields.${custom} != trigger.record.custom_fields.${custom}\``
          const meant = meantBy(value, allowed)
          return meant === undefined ? oneOfThese(allowed) : writeInstead(meant, value)
        },
      }
    }
    case 'custom':
      return unknownCustomField(mistake.name, mistake.of, mistake.names, writeInstead)
    case 'absent': {
      const { path, at } = mistake
      const read = pathText(known(path.slice(0, at + 1)))
      return {
        code: 'member_may_be_missing',
        message: `${read} may be missing: the output_schema does not require it, and where it is missing this fails`,
        hint: `add a default, \`${pathText(known(path))} | default: …\`, or ${String(path[at])} to \`required\` of the schema`,
      }
    }
    case 'arguments':
      return { code: 'placeholder_syntax', message: mistake.problem, hint: () => mistake.hint }
    case 'mask':
      return readsMask(mistake.name, mistake.of)
    case 'operand':
      return {
        code: 'type_mismatch',
        message: `${mistake.filter} takes ${mistake.wants}, but gets ${mistake.what}`,
        hint: () => otherFilter(mistake),
      }
    case 'incomparable':
      return { code: 'impossible_comparison', message: mistake.problem, hint: () => mistake.hint }
    case 'always': {
      const { what, written } = mistake
      return {
        code: 'impossible_comparison',
        message: `${what} always holds${what === 'a number' ? ', also 0' : ''}`,
        hint: () =>
          what === 'a number' ? writeInstead(`${inParentheses(written)} > 0`, written) : undefined,
      }
    }
    case 'null':
      return {
        code: 'computed_from_null',
        message: `${mistake.of} may be null, and ${mistake.filter} of null is null`,
        hint: MAKES_TIMES.includes(mistake.filter)
          ? `test it before, such as by a condition with \`${mistake.of} != null\`, or add a default after it`
          : writeInstead(
              mistake.isArgument ? `(${mistake.of} | default: 0)` : `${mistake.of} | default: 0`,
              mistake.of,
            ),
      }
  }
}

const MAKES_TIMES = ['add_time', 'time_until']

const inParentheses = (written: string) =>
  written.includes('|') && !/^\(.*\)$/.test(written) ? `(${written})` : written

/** What to write for a filter that does not take its value. */
function otherFilter({ filter, what, wants }: Mistake & { kind: 'operand' }): string | undefined {
  if (wants === 'a number')
    return what === 'a time'
      ? 'add to a time by `| add_time: 3, "days"`; the days between two are `| time_until: run.started_at, "days"`'
      : 'take a number from it: `| size`, `| sum: "<field>"`, or one of its members'
  if (wants === 'a text')
    return what === 'a list'
      ? `join its items before: \`| join: ", " | ${filter}\``
      : 'read one of its members'
  if (filter === 'concat') return 'to join texts, write `| append: …`'
  return undefined
}

/** The warning about a custom field that the organization has not defined. */
export function unknownCustomField(
  name: string,
  entity: string,
  names: readonly string[],
  hint: (meant: string, written: string) => string,
): Described {
  return {
    code: 'unknown_custom_field',
    message: `${entity} have no custom field ${name.slice(0, 100)} yet`,
    hint: () => {
      const meant = nearest(name, names)
      return meant === undefined ? defineField(entity, name) : hint(meant, name)
    },
  }
}

/** The warning about a sensitive custom field, whose value no workflow reads. */
export const readsMask = (name: string, entity: string): Described => ({
  code: 'reads_mask',
  message: `custom_fields.${name.slice(0, 100)} of ${entity} is sensitive: a workflow reads its mask, never its value`,
  hint: 'test only whether it has a value (`!= null`); keep what workflows decide by in another field',
})

const MAX_LISTED = 30

export const listed = (names: readonly string[]) =>
  names.length > MAX_LISTED ? `${names.slice(0, MAX_LISTED).join(', ')}, …` : names.join(', ')

export const oneOfThese = (names: readonly string[]) =>
  names.length === 0 ? undefined : `one of ${listed(names)}`

function wrongPath(mistake: Mistake & { kind: 'path' }): Described {
  const { path, at, what, names, origin } = mistake
  if (origin) return unlikelyPath(mistake, origin)
  const key = path[at]!
  const [root, id, member] = path
  const isField = root === 'nodes' && member === 'output' && at === 3
  const before = known(path.slice(0, at))
  const subject = isField ? `the output of ${id}` : before.length === 0 ? 'the value' : pathText(before)
  const has = what === 'a mapping' || names.length === 0 ? '' : `: it is ${what}`
  return {
    code: 'unknown_field',
    message: `${subject} has no ${isField ? 'field ' : ''}${String(key).slice(0, 100)}${has}`,
    hint: () => mistake.type.empty ?? correction(mistake) ?? oneOfThese(names),
  }
}

/** A path into a value whose type is only likely. */
function unlikelyPath(
  mistake: Mistake & { kind: 'path' },
  { code, what: from, others, otherwise }: Origin,
): Described {
  const { path, at, what, names } = mistake
  const before = pathText(known(path.slice(0, at)))
  const isMapping = what === 'a mapping'
  return {
    code,
    message: `${from} has no ${pathText(known(path.slice(0, at + 1)))}${isMapping ? '' : `: ${before} is ${what}`}`,
    hint: () => {
      const better = correction(mistake)
      if (better !== undefined) return better
      if (what === 'a list') return `read one of its items, such as ${before}[0], or all of them with a loop`
      if (!isMapping || names.length === 0) return otherwise
      return `${oneOfThese(names)}${others ? `; or add a default, if ${others} have it` : ''}`
    },
  }
}
