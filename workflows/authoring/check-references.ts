import { textProblem } from '../language/check-events.ts'
import type { CancelSpec, NodeSpec } from '../language/definition.ts'
import { hasPlaceholder, type TemplateError } from '../language/expressions/template.ts'
import { isWarning } from '../language/finding-codes.ts'
import { nearestName, type Problem, pointer } from '../language/problems.ts'
import { syntaxHint, withFilter } from '../language/reference-hints.ts'
import type { PlacedText, Texts } from '../language/texts.ts'
import { kindsOf } from '../language/value-types.ts'
import { findNodeType } from '../nodes/index.ts'
import { isObject } from '../shared/is-object.ts'
import { EXPRESSION } from '../shared/limits.ts'
import { cancelSpecs } from './cancel-on.ts'
import { CANCEL_ROOTS } from './check-cancel-on.ts'
import { WHEN_ROOTS } from './check-trigger.ts'
import type { Graph } from './graph.ts'
import { KEY_ROOTS, keysOf } from './keys.ts'
import type { Bodies } from './loops.ts'
import type { Lowered } from './lower.ts'
import type { Mistake } from './mistake.ts'
import { describeMistake } from './mistakes.ts'
import { type Names, namesOf, type Place, referenceProblem } from './reference-problems.ts'
import type { Types } from './types.ts'

/** Misspelt filters that are corrected in one text, to check its references too: each takes another parse. */
const MAX_CORRECTIONS = 3

/** Checks every placeholder of nodes and outputs. @returns the problems, and the ids of nodes whose result is read. */
export function checkReferences(
  lowered: Lowered,
  graph: Graph,
  bodies: Bodies,
  types: Types,
): { problems: Problem[]; read: Set<string> } {
  const checks = new ReferenceChecks(lowered, namesOf(lowered, graph, bodies), types)
  for (const node of lowered.definition.nodes) checks.checkNode(node)
  checks.checkOutputs()
  checks.checkTrigger()
  for (const { text, path } of keysOf(lowered.definition.settings)) checks.checkKey(text, path)
  for (const { spec, path } of cancelSpecs(lowered.definition.settings))
    checks.checkCancel(spec, `${path}/when`)
  return checks
}

class ReferenceChecks {
  readonly problems: Problem[] = []
  /** The nodes whose result is read. */
  readonly read = new Set<string>()
  private readonly lowered: Lowered
  private readonly names: Names
  private readonly types: Types
  private testedPaths: ReadonlySet<string> | undefined

  constructor(lowered: Lowered, names: Names, types: Types) {
    this.lowered = lowered
    this.names = names
    this.types = types
  }

  /** The condition of a trigger reads no nodes. */
  checkTrigger(): void {
    const { trigger } = this.lowered.definition
    if (trigger.type !== 'event' || trigger.when === undefined) return
    // Other roots are reported by check-trigger.ts.
    const roots = this.lowered.texts.readable(trigger.when).map(({ path: [root] }) => String(root))
    if (roots.some((root) => !WHEN_ROOTS.includes(root))) return
    this.checkTypes(trigger.when, { isTest: true }, () => ({ path: '/trigger/when' }), new Set())
  }

  /** A key is rendered before the run: it reads neither nodes nor the run. */
  checkKey(text: string, path: string): void {
    if (!this.readsOthers(text, path, KEY_ROOTS, 'before a run: a placeholder in a key')) {
      this.checkText(text, () => path, {})
      const kinds = kindsOf(this.types.ofText(text, {})) ?? []
      if (kinds.length > 0 && kinds.every((kind) => kind === 'object' || kind === 'array'))
        this.problems.push({
          code: 'type_mismatch',
          message: `${text} is of type ${kinds.join(' or ')}: a key is a text or a number`,
          path,
          hint: 'read one of its members, such as its id',
        })
    }
  }

  /** A condition of `cancel_on` is rendered outside of the run, which need not have begun: it reads no nodes. */
  checkCancel({ event, when }: CancelSpec, path: string): void {
    if (
      when === undefined ||
      this.readsOthers(when, path, CANCEL_ROOTS, 'in cancel_on: a placeholder in its when')
    )
      return
    this.checkText(when, () => path, { own: { event: this.types.ofEvent([event].flat()) }, isTest: true })
  }

  /** Reports the first root that a text cannot read. @returns whether there is one. */
  private readsOthers(text: string, path: string, roots: string[], place: string): boolean {
    const outside = this.lowered.texts
      .readable(text)
      .find(({ path: [root] }) => typeof root === 'string' && !roots.includes(root))
    if (!outside) return false
    const root = String(outside.path[0])
    this.problems.push({
      code: 'unknown_root',
      message: `${root.slice(0, 100)} is not available ${place} starts with one of ${roots.join(', ')}`,
      path,
      ...nearestName(root, roots),
    })
    return true
  }

  checkNode(node: NodeSpec): void {
    const path = this.lowered.nodePath(node.id)
    const placed = this.withPlaceholders(node.config)
    if (this.exceedsLimit(placed, `${path}/config`, node)) return
    const tested = testedBy(node, this.lowered.texts)
    const placeOf = placesIn(node)
    const fields = new Set(
      findNodeType(node.type)
        ?.itemFields(node.config)
        .map((one) => pointer(...one.path)),
    )
    for (const { text, path: keys } of placed)
      this.checkText(text, () => `${path}/config${pointer(...keys)}`, {
        ...placeOf(String(keys[0])),
        tested,
        isField: fields.has(pointer(...keys)),
      })
    if (node.when !== undefined) {
      this.checkText(node.when, () => `${path}/when`, { reader: node, isCondition: true, isTest: true })
      const text = textProblem(node.when)
      if (text) this.problems.push({ ...text, path: `${path}/when`, node_id: node.id })
    }
  }

  checkOutputs(): void {
    const outputs = this.withPlaceholders(this.lowered.definition.outputs)
    if (this.exceedsLimit(outputs, '/outputs')) return
    for (const { text, path } of outputs) this.checkText(text, () => `/outputs${pointer(...path)}`, {})
  }

  /** The texts in a value that have a placeholder. */
  private withPlaceholders(value: object): PlacedText[] {
    return this.lowered.texts.of(value).filter(({ text }) => hasPlaceholder(text))
  }

  private exceedsLimit(placed: PlacedText[], path: string, reader?: NodeSpec): boolean {
    const count = placed.reduce((sum, { text }) => sum + text.split('{{').length - 1, 0)
    if (count <= EXPRESSION.placeholders) return false
    this.problems.push({
      code: 'placeholder_syntax',
      message: `there are ${count} placeholders here: at most ${EXPRESSION.placeholders} can be rendered at once`,
      path,
      hint: reader ? 'divide them among several nodes' : 'remove some of the outputs',
      ...(reader ? { node_id: reader.id } : {}),
    })
    return true
  }

  private checkText(text: string, path: () => string, place: Place, corrections = 0): void {
    /** The starts of the paths that are reported already. */
    const wrong = new Set<string>()
    const at = () => ({ path: path(), ...(place.reader ? { node_id: place.reader.id } : {}) })
    try {
      for (const reference of this.lowered.texts.references(text)) {
        const [root, name] = reference.path
        if (root === 'nodes' && root !== place.late && typeof name === 'string') this.read.add(name)
        const problem = referenceProblem(this.names, reference, place)
        if (!problem) continue
        this.problems.push({ ...problem, ...at() })
        if (!isWarning(problem.code)) wrong.add(startOf(reference.path))
      }
      this.checkTypes(text, place, at, wrong)
    } catch (error) {
      const { message, hint } = error as TemplateError
      this.problems.push({
        code: 'placeholder_syntax',
        message,
        hint: () => hint ?? syntaxHint(message, text),
        ...at(),
      })
      // The references of the corrected text are checked in the same validation.
      const corrected = corrections < MAX_CORRECTIONS ? withFilter(text, message) : undefined
      if (corrected !== undefined) this.checkText(corrected, path, place, corrections + 1)
    }
  }

  /** Whether the workflow tests somewhere what may be null, or has found a record by it. */
  private isTested(path: string): boolean {
    this.testedPaths ??= testedPaths(this.lowered)
    return this.testedPaths.has(path) || this.testedPaths.has(`.${path.split('.').at(-1)}`)
  }

  private checkTypes(text: string, place: Place, at: () => Pick<Problem, 'path'>, wrong: Set<string>): void {
    const optional = this.lowered.texts.readable(text).filter((reference) => reference.optional)
    const report = (mistake: Mistake) => {
      if (mistake.kind === 'path' && wrong.has(startOf(mistake.path))) return
      // What has a default may well be missing in a sample.
      if (
        mistake.origin?.code === 'unlike_sample' &&
        mistake.kind === 'path' &&
        optional.some(({ path }) => isPath(path, mistake.path))
      )
        return
      if (mistake.kind === 'absent' && optional.some(({ path }) => isPath(path, mistake.path))) return
      if (mistake.kind === 'null' && (place.isCompared || this.isTested(mistake.of))) return
      this.problems.push({ ...describeMistake(mistake), ...at() })
    }
    this.types.check(text, place, report)
  }
}

/** The inputs and nodes that the `when` of a node reads, such as `inputs.email`. */
export const testedBy = ({ when }: NodeSpec, texts: Texts): ReadonlySet<string> =>
  new Set(when === undefined ? [] : texts.readable(when).map(({ path }) => startOf(path)))

/** The paths that conditions read, and with a dot before them the fields by which records are searched. */
function testedPaths({ definition, texts }: Lowered): ReadonlySet<string> {
  const conditions = definition.nodes.flatMap(({ type, config, when }) => [
    ...(when === undefined ? [] : [when]),
    ...(findNodeType(type)?.compared ? texts.of(config).map(({ text }) => text) : []),
  ])
  const { trigger } = definition
  if (trigger.type === 'event' && trigger.when !== undefined) conditions.push(trigger.when)
  return new Set([
    ...conditions
      .filter(hasPlaceholder)
      .flatMap((text) => texts.readable(text).map(({ path }) => path.join('.'))),
    ...definition.nodes.flatMap(({ config }) =>
      isObject(config.filters) ? Object.keys(config.filters).map((name) => `.${name.split('[')[0]}`) : [],
    ),
  ])
}

const isPath = (path: readonly unknown[], other: readonly unknown[]): boolean =>
  path.length === other.length && path.every((segment, index) => segment === other[index])

/** A node, an input, or another root. */
const startOf = ([root, name]: readonly unknown[]): string => `${root}.${name}`

/** The place of the placeholders at each key of a node's config. */
function placesIn(node: NodeSpec): (key: string) => Place {
  const type = findNodeType(node.type)
  if (!type) return () => ({ reader: node })
  const external = type.reachesOutside(node.config)
  const perItem = type.perItem(node.config)
  const perItemWithItems = type.perItem({ ...node.config, items: [] })
  return (key) => ({
    reader: node,
    isTest: Object.hasOwn(type.late, key) || (type.repeats === true && key === 'until'),
    isCompared: type.compared,
    // Late texts are rendered without secrets.
    external: external && !Object.hasOwn(type.late, key),
    late: Object.hasOwn(type.late, key) ? type.late[key] : undefined,
    perItem: perItem.includes(key),
    withoutItems: !perItem.includes(key) && perItemWithItems.includes(key),
  })
}
