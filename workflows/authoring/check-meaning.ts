import type { Definition, InputSpec, NodeSpec, Trigger } from '../language/definition.ts'
import { fits, isAllowed } from '../language/inputs.ts'
import { nearestName, type Problem, pointer, write, writeInstead } from '../language/problems.ts'
import { NODE_MEMBERS } from '../language/reference-hints.ts'
import { flowText } from '../language/repair.ts'
import { findNodeType } from '../nodes/index.ts'
import { RECORD_EVENTS } from '../shared/events.ts'
import { testedBy } from './check-references.ts'
import type { Lowered } from './lower.ts'
import { renderedTexts } from './rendered-texts.ts'
import { GIVEN_MEMBERS, TRIGGER_MEMBERS } from './trigger-members.ts'

/** Checks what is well-formed, but does not mean what its author expects. */
export function checkMeaning(lowered: Lowered): Problem[] {
  return [
    ...defaultProblems(lowered.definition),
    ...prefixProblems(lowered),
    ...literalReferences(lowered),
    ...readsOf(lowered),
  ]
}

/** Checks that the default of each input has its type. */
function defaultProblems({ inputs }: Definition): Problem[] {
  return Object.entries(inputs).flatMap(([name, input]): Problem[] => {
    const { type, default: value } = input
    if (value === undefined) return []
    if (fits(type, value)) {
      if (isAllowed(input, value)) return []
      return [
        {
          code: 'type_mismatch',
          message: `the default of ${name} is none of its values: ${input.enum!.join(', ').slice(0, 1_000)}`,
          path: `/inputs${pointer(name)}/default`,
          ...nearestName(String(value), input.enum!),
        },
      ]
    }
    const better = converted(type, value)
    return [
      {
        code: 'type_mismatch',
        message: `the default of ${name} must be of type ${type}, but is ${JSON.stringify(value)?.slice(0, 100)}`,
        path: `/inputs${pointer(name)}/default`,
        ...(better === undefined ? {} : { hint: write(flowText(better)) }),
      },
    ]
  })
}

function converted(type: InputSpec['type'], value: unknown): unknown {
  const text = typeof value === 'object' ? undefined : String(value)
  if (type === 'string') return text
  if (type === 'array') return value === null ? [] : [value]
  if (type === 'number' && text !== undefined && /^-?\d+(\.\d+)?$/.test(text.trim())) return Number(text)
  if (type === 'boolean' && text !== undefined) {
    if (/^(true|yes|on|1)$/i.test(text)) return true
    return /^(false|no|off|0)$/i.test(text) ? false : undefined
  }
  return undefined
}

/** The members by which a plain `<root>.<member>` is recognised as a reference. */
const MEMBERS: Record<string, readonly string[]> = {
  trigger: TRIGGER_MEMBERS,
  run: ['id', 'workflow_id', 'workflow_name', 'started_at'],
  org: ['id', 'name', 'currency', 'timezone'],
}

/** A reference in single braces, or without braces. */
const BRACED =
  /(?<!\{)\$?\{\s*((?:inputs|nodes|trigger|run|org|env|secrets|item)(?:\.\w+|\[\w+\])+)\s*\}(?!\})/
const PLAIN = /^(inputs|nodes|trigger|run|org)\.(\w+)(\.\w+|\[\d+\])*$/

/** Reports the signs that other languages write before a placeholder: here they are a part of the text. */
function prefixProblems(lowered: Lowered): Problem[] {
  const problems: Problem[] = []
  for (const { text, path, node, configKey, isCancel } of renderedTexts(lowered)) {
    // A condition is one placeholder: see `textProblem`.
    if ((node && configKey === undefined) || isCancel) continue
    const [, sign] = /^\s*(=\s*|\$)\{\{/.exec(text) ?? []
    if (sign === undefined || (sign === '$' && !/^\$\{\{[^{}]*\}\}\s*$/.test(text))) continue
    problems.push({
      // An amount may have a dollar before it.
      code: sign === '$' ? 'literal_reference' : 'placeholder_syntax',
      message: `${JSON.stringify(sign.trim())} before a placeholder is a part of the text`,
      hint: writeInstead('{{', `${sign}{{`),
      path: path(),
      ...(node ? { node_id: node.id } : {}),
    })
  }
  return problems
}

/** Warns about references without `{{ }}`: they are plain text. */
function literalReferences(lowered: Lowered): Problem[] {
  const { nodes, inputs } = lowered.definition
  const ids = new Set(nodes.map(({ id }) => id))
  const resolves = (text: string) => {
    const [, root = '', name = '', member] = PLAIN.exec(text) ?? []
    if (root === 'inputs') return Object.hasOwn(inputs, name)
    if (root === 'nodes') return ids.has(name) && NODE_MEMBERS.includes(member?.slice(1) ?? '')
    return MEMBERS[root]?.includes(name) ?? false
  }
  const problems: Problem[] = []
  for (const { text, path, node, configKey, isCancel } of renderedTexts(lowered)) {
    const braced = BRACED.exec(text)
    // `constant_when` reports a `when` without placeholders.
    const isPlain = !(node && configKey === undefined) && !isCancel && resolves(text)
    const found = braced ? braced[0] : isPlain ? text : undefined
    if (found === undefined) continue
    problems.push({
      code: 'literal_reference',
      message: `${found.slice(0, 100)} is plain text: only {{ … }} is a placeholder`,
      hint: braced ? writeInstead(`{{ ${braced[1]} }}`, braced[0]) : write(flowText(`{{ ${text} }}`)),
      path: path(),
      ...(node ? { node_id: node.id } : {}),
    })
  }
  return problems
}

/** Warns about reads of values that may be missing: optional inputs, and records that the trigger does not provide. */
function readsOf(lowered: Lowered): Problem[] {
  const { inputs, trigger } = lowered.definition
  const read = new Set<string>()
  const problems: Problem[] = []
  const isDebounced = lowered.definition.settings.debounce !== undefined
  const testedIn = (node: NodeSpec | undefined) => (node ? testedBy(node, lowered.texts) : NOTHING)
  /** The members of `trigger` that are reported, once each. */
  const absent = new Set<string>()
  for (const { text, path, node, configKey, isCancel } of renderedTexts(lowered)) {
    for (const reference of lowered.texts.readable(text)) {
      const [root, name] = reference.path
      // A comparison is defined for null too.
      if (
        root === 'inputs' &&
        typeof name === 'string' &&
        !reference.optional &&
        !isCancel &&
        !isCompared(node, configKey) &&
        !testedIn(node).has(`inputs.${name}`)
      )
        read.add(name)
      // Also with a default: the result would always be the default.
      const member = String(name)
      if (isDebounced && node && root === 'trigger' && OF_CHANGES.includes(member) && !absent.has(member)) {
        absent.add(member)
        problems.push({
          code: 'debounced_change',
          message: `trigger.${member} is of the last event only: with settings.debounce, a run stands for several, and what the earlier ones changed is not in it`,
          hint: 'compare the record with a value that an earlier run has stored, or leave debounce out',
          path: path(),
          node_id: node.id,
        })
      }
      const lack = root === 'trigger' && !absent.has(member) ? lackOf(trigger, member) : undefined
      if (!lack) continue
      absent.add(member)
      problems.push({
        code: 'trigger_without_record',
        ...lack,
        path: path(),
        ...(node ? { node_id: node.id } : {}),
      })
    }
  }
  // A condition decides about it: then its branches know that it has a value, or that it has none.
  const decided = decidedInputs(lowered)
  const given = trigger.type === 'manual' || trigger.type === 'webhook'
  const missing = Object.entries(inputs).filter(
    ([name, input]) => read.has(name) && !decided.has(name) && !input.required && input.default === undefined,
  )
  return [
    ...problems,
    ...missing.map(([name, { type, ...rest }]): Problem => {
      const { required: _, ...others } = rest
      const better = given ? { type, ...others, required: true } : { type, ...others, default: EMPTY[type] }
      return {
        code: 'input_may_be_missing',
        message: `${name} is read, but is null if a run does not set it: it is not required and has no default`,
        hint: write(flowText(better)),
        path: `/inputs${pointer(name)}`,
      }
    }),
  ]
}

/** The inputs that a node compares, such as a condition before the node that reads them. */
const decidedInputs = ({ definition, texts }: Lowered): ReadonlySet<string> =>
  new Set(
    definition.nodes
      .filter(({ type }) => findNodeType(type)?.compared)
      .flatMap(({ config }) => texts.of(config))
      .flatMap(({ text }) => texts.readable(text))
      .flatMap(({ path: [root, name] }) => (root === 'inputs' && typeof name === 'string' ? [name] : [])),
  )

/** Why no run has a member of `trigger`; undefined if one may have it. */
function lackOf(trigger: Trigger, member: string): Pick<Problem, 'message' | 'hint'> | undefined {
  if (trigger.type === 'manual' && GIVEN_MEMBERS.includes(member))
    return {
      message: `there is no trigger.${member} in a workflow that is started by hand`,
      hint: 'say what starts it, `trigger: webhook` or `trigger: {type: event, events: [contact.created]}`; or read an input; an error workflow reads `trigger.error`, `trigger.node` and `trigger.run`',
    }
  if (trigger.type !== 'event' || !OF_CHANGES.includes(member)) return undefined
  const { events } = trigger
  if (!events.every((name) => name.endsWith('.created') && RECORD_EVENTS.includes(name))) return undefined
  const [kind = ''] = events[0]!.split('.')
  return {
    message: `trigger.${member} is empty: ${events.join(', ').slice(0, 200)} changes no record that was there before`,
    hint: `read trigger.record, or add the event \`${kind}.updated\``,
  }
}

/** The members of `trigger` that tell what a change of a record has changed. */
const OF_CHANGES = ['previous', 'changed']

const NOTHING: ReadonlySet<string> = new Set()

/** Whether a text is only compared: a `when`, a condition, or the filter of a wait. */
function isCompared(node: NodeSpec | undefined, configKey: string | undefined): boolean {
  if (!node) return false
  const type = findNodeType(node.type)
  return configKey === undefined || type?.compared === true || Object.hasOwn(type?.late ?? {}, configKey)
}

/** The default to propose for an input if the trigger sets no inputs. */
const EMPTY: Record<InputSpec['type'], unknown> = {
  string: '',
  number: 0,
  boolean: false,
  object: {},
  array: [],
  any: '',
}
