import { FILTERS } from './expressions/filters.ts'
import { filterInstead } from './expressions/foreign-filters.ts'
import type { Reference } from './expressions/references.ts'
import { translated } from './expressions/translate.ts'
import { meantBy, writeInstead } from './problems.ts'

/** The members of a node's result. */
export const NODE_MEMBERS = ['output', 'error', 'status', 'handle']

type Path = readonly (string | number)[]

/** A path as it is written in a placeholder. */
export const pathText = ([root, ...rest]: Path): string =>
  rest.reduce<string>(
    (text, segment) =>
      typeof segment === 'string' && /^[A-Za-z_][\w-]*$/.test(segment)
        ? `${text}.${segment}`
        : `${text}[${typeof segment === 'number' ? segment : JSON.stringify(segment)}]`,
    String(root),
  )

/** The hint to write another path; for a path with computed segments, to write another start. */
const instead = ({ path }: Pick<Reference, 'path'>, better: Path): string =>
  writeInstead(pathText(better), pathText(path))

/** For an unknown root: the node or input that was meant, or the nearest root. */
export function rootHint(
  reference: Reference,
  { roots, nodes, inputs }: { roots: readonly string[]; nodes: readonly string[]; inputs: readonly string[] },
): string | undefined {
  const [root, ...rest] = reference.path
  const name = String(root)
  if (LOOPS.includes(name) && roots.includes('index')) {
    if (rest[0] === 'index0') return instead(reference, ['index'])
    if (rest[0] === 'index') return 'write `index`, which counts from 0, or `index | plus: 1`'
  }
  const inAnswer = name === 'page' ? rest : reference.path
  if (OF_ANSWERS.includes(String(inAnswer[0])))
    return `a path of \`paginate\` has no braces: write \`${pathText(inAnswer)}\`; its \`until\` reads \`page.body\`, later nodes read nodes.<id>.output.body`
  if (PRESENT.includes(name))
    return 'write `run.started_at`, the time of the start, or for its day `run.started_at | date: "%Y-%m-%d"`'
  if (VALUES.includes(name) && inputs.includes(String(rest[0])))
    return instead(reference, ['inputs', ...rest])
  if (nodes.includes(name)) return instead(reference, ['nodes', name, ...throughOutput(rest)])
  if (inputs.includes(name)) return instead(reference, ['inputs', ...reference.path])
  const near = meantBy(name, [...roots, ...nodes, ...inputs])
  if (near === undefined)
    return rest.length === 0 ? `if it is a text, write it in quotes: '${name.slice(0, 100)}'` : undefined
  if (roots.includes(near)) return instead(reference, [near, ...rest])
  return nodes.includes(near)
    ? instead(reference, ['nodes', near, ...throughOutput(rest)])
    : instead(reference, ['inputs', near, ...rest])
}

/** The parts of the answer of a request. */
const OF_ANSWERS = ['body', 'headers']

/** The roots of values of the workflow in other languages. */
const VALUES = ['constants', 'const', 'vars', 'variables', 'params', 'parameters', 'args']

/** The names of the current iteration, and of the present time, in other languages. */
const LOOPS = ['loop', 'forloop']
const PRESENT = ['now', 'today']

/** The path from a node that `outputs.x`, `x` or an empty path most likely means. */
function throughOutput(path: Path): Path {
  const [member, ...rest] = path
  if (member === undefined) return ['output']
  const near = NODE_MEMBERS.includes(String(member)) ? String(member) : meantBy(String(member), NODE_MEMBERS)
  return near === undefined ? ['output', ...path] : [near, ...rest]
}

/** For `nodes.<id>.<member>` with an unknown member. */
export function memberHint(reference: Reference): string {
  const [root, id, ...rest] = reference.path
  return instead(reference, [root!, id!, ...throughOutput(rest)])
}

/** For a path with a wrong name at `index`. */
export function nameHint(reference: Reference, index: number, names: readonly string[]): string | undefined {
  const near = meantBy(String(reference.path[index]), names)
  if (near === undefined) return undefined
  return instead(
    reference,
    reference.path.map((segment, at) => (at === index ? near : segment)),
  )
}

/** For a placeholder that does not parse. */
export function syntaxHint(message: string, text: string): string | undefined {
  const filter = unknownFilter(message)
  if (filter) return writeInstead(filter.meant, filter.written)
  const other = translated(text)
  if (other) return writeInstead(other.better, other.written)
  if (/^undefined filter: /.test(message))
    return 'the page of expressions, /docs/expressions, lists the filters; what none of them does, a node `code` can'
  // A placeholder at the end that is not closed, such as `{{ run.id` or `{{ run.id }`.
  const [, inner] = /^(?:(?!\{\{)[\s\S])*\{\{([^{}]*)\}?$/.exec(text) ?? []
  if (inner === undefined || !/ not closed$/.test(message)) return undefined
  return writeInstead(`{{${inner.trimEnd()} }}`, text.slice(text.indexOf('{{')))
}

/** The text with the filter that was meant; undefined if that is not known. */
export function withFilter(text: string, message: string): string | undefined {
  const filter = unknownFilter(message)
  const corrected =
    filter && text.replace(new RegExp(`\\|\\s*${filter.written}\\b`, 'g'), `| ${filter.meant}`)
  return corrected === text ? undefined : corrected
}

function unknownFilter(message: string): { written: string; meant: string } | undefined {
  const [, written] = /^undefined filter: (\w+)$/.exec(message) ?? []
  const meant = written === undefined ? undefined : (filterInstead(written) ?? meantBy(written, FILTERS))
  return meant === undefined ? undefined : { written: written!, meant }
}
