import type { Definition, NodeSpec } from '../language/definition.ts'
import { filledFrom } from '../language/sample-types.ts'
import type { Texts } from '../language/texts.ts'
import {
  BOOLEAN,
  fieldType,
  INTEGER,
  itemsOf,
  listOf,
  members,
  NULL,
  NUMBER,
  oneOf,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import type { Catalogue } from '../nodes/catalogue.ts'
import type { Comparison, TypeContext } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import { eventType } from '../nodes/wait-for-event.ts'
import { isObject } from '../shared/is-object.ts'
import { NODE_STATUSES } from '../shared/statuses.ts'
import { checkPlaceholder, typeOfPlaceholder } from './expression-types.ts'
import { type Bodies, isLoop, isRepeat } from './loops.ts'
import type { Lowered } from './lower.ts'
import type { Mistake, Segment } from './mistake.ts'
import {
  errorOf,
  ORGANIZATION,
  RUN,
  RUN_AT_END,
  RUN_IN_CLEANUP,
  triggerType,
  typeOfInput,
} from './root-types.ts'

/** Where a placeholder stands: which items and roots it can read. */
export interface Site {
  /** The node that reads it; absent for an output of the workflow and the condition of a trigger. */
  reader?: NodeSpec
  /** The root that only this text can read. */
  late?: string | undefined
  /** It is rendered for each item of a list. */
  perItem?: boolean
  /** Only whether the value holds counts. */
  isTest?: boolean
  /** The roots that only this place has. */
  own?: Readonly<Record<string, ValueType>>
}

/** How deep types of nodes are derived from those of other nodes. */
const MAX_DEPTH = 100

/**
 * The types of what the placeholders of a definition read. Each is derived from what it comes from: a record kind, an
 * event, the output of a node type, an input, the items of a loop.
 */
export class Types {
  private readonly definition: Definition
  private readonly texts: Texts
  private readonly bodies: Bodies
  private readonly catalogue: Catalogue
  private readonly nodes: ReadonlyMap<string, NodeSpec>
  private readonly outputs = new Map<string, ValueType>()
  private readonly roots: Record<string, ValueType>
  private readonly open = new Set<string>()
  private readonly ends = new Map<string, { nodes: readonly NodeSpec[] | undefined }>()

  constructor(
    { definition, texts }: Pick<Lowered, 'definition' | 'texts'>,
    bodies: Bodies,
    catalogue: Catalogue,
  ) {
    this.definition = definition
    this.texts = texts
    this.bodies = bodies
    this.catalogue = catalogue
    this.nodes = new Map(definition.nodes.map((node) => [node.id, node]))
    this.roots = {
      inputs: members(
        Object.fromEntries(
          Object.entries(definition.inputs).map(([name, input]) => [name, typeOfInput(input)]),
        ),
      ),
      trigger: triggerType(definition.trigger, catalogue),
      run: RUN,
      org: ORGANIZATION,
      secrets: { type: 'object', additionalProperties: TEXT },
    }
  }

  /** The type of a value as it is authored, with all its placeholders rendered. */
  ofValue(value: unknown, site: Site): ValueType {
    if (typeof value === 'string') return this.ofText(value, site)
    if (typeof value === 'number') return NUMBER
    if (typeof value === 'boolean') return BOOLEAN
    if (value === null) return NULL
    if (Array.isArray(value)) {
      const items = value.slice(0, 20).map((item) => this.ofValue(item, site))
      return listOf(value.length > 20 ? UNKNOWN : unionOf(items))
    }
    if (!isObject(value)) return UNKNOWN
    return members(
      Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.ofValue(member, site)])),
    )
  }

  ofText(text: string, site: Site): ValueType {
    const parts = this.texts.parts(text)
    if (!parts) return UNKNOWN
    const [only] = parts
    if (parts.length !== 1 || only === undefined || typeof only === 'string') return TEXT
    return typeOfPlaceholder(only, { rootType: (path) => this.rootType(path, site) })
  }

  /** Reports what is wrong in the placeholders of a text. */
  check(text: string, site: Site, report: (mistake: Mistake) => void): void {
    for (const part of this.texts.parts(text) ?? [])
      if (typeof part !== 'string')
        checkPlaceholder(part, { rootType: (path) => this.rootType(path, site), report }, site.isTest)
  }

  /** The type of the items that a node reads as `items`. */
  ofItems(node: NodeSpec): ValueType {
    return itemsOf(this.ofValue(node.config.items, { reader: node }))
  }

  /** The type of what a comparison in the config of a node tests. */
  ofCompared({ of }: Comparison, node: NodeSpec): ValueType {
    return 'field' in of ? fieldType(this.ofItems(node), of.field) : this.ofValue(of.value, { reader: node })
  }

  /** The type of a node's output. */
  ofNode(node: NodeSpec): ValueType {
    const known = this.outputs.get(node.id)
    if (known) return known
    // A node that reads itself, or too long a chain: reported elsewhere, or not worth it.
    if (this.open.has(node.id) || this.open.size > MAX_DEPTH) return UNKNOWN
    this.open.add(node.id)
    const output = findNodeType(node.type)?.outputType(node.config, this.contextOf(node))
    this.open.delete(node.id)
    const { outputs = {} } = this.catalogue
    const likely = Object.hasOwn(outputs, node.id) ? outputs[node.id] : undefined
    const found = filledFrom(output ?? UNKNOWN, likely)
    this.outputs.set(node.id, found)
    return found
  }

  /** The type of the root `event` where one of these events is compared with runs. */
  ofEvent(names: readonly string[]): ValueType {
    return eventType(names, this.catalogue)
  }

  /** The type of the root that its late values read. */
  private ofLate(node: NodeSpec): ValueType {
    return findNodeType(node.type)?.lateType(node.config, this.contextOf(node)) ?? UNKNOWN
  }

  private contextOf(node: NodeSpec): TypeContext {
    return {
      catalogue: this.catalogue,
      typeOf: (value) => this.ofValue(value, { reader: node }),
      result: () => this.resultOf(node),
    }
  }

  /** The loops around a placeholder; a text that a loop renders for each item is in its body. */
  loopsAround({ reader, perItem }: Site): readonly string[] {
    if (!reader) return []
    const outer = this.bodies.around(reader.id)
    return perItem && isLoop(reader) ? [reader.id, ...outer] : outer
  }

  /** The type of the first segments of a path: of a root, or of the member of a node. */
  private rootType(path: readonly Segment[], site: Site): { type: ValueType; segments: number } {
    const [root, name, member] = path
    const unknown = { type: UNKNOWN, segments: path.length }
    if (root === undefined) return unknown
    if (site.own && Object.hasOwn(site.own, root)) return { type: site.own[root]!, segments: 1 }
    if (root === site.late) return { type: site.reader ? this.ofLate(site.reader) : UNKNOWN, segments: 1 }
    if (root === 'item') return { type: this.itemOf(site), segments: 1 }
    if (root === 'previous') return { type: this.previousOf(site), segments: 1 }
    if (root === 'index') return { type: INTEGER, segments: 1 }
    if (root === 'nodes') {
      const node = typeof name === 'string' ? this.nodes.get(name) : undefined
      if (!node || typeof member !== 'string') return unknown
      const type = this.memberOf(node, member, site)
      return type ? { type, segments: 3 } : unknown
    }
    // An unknown input, and a record that nobody gives, are reported as such.
    if (root === 'inputs' && !(typeof name === 'string' && Object.hasOwn(this.definition.inputs, name)))
      return unknown
    const role = root === 'run' ? site.reader?.role : undefined
    if (role) return { type: role === 'finally' ? RUN_AT_END : RUN_IN_CLEANUP, segments: 1 }
    return { type: Object.hasOwn(this.roots, root) ? this.roots[root]! : UNKNOWN, segments: 1 }
  }

  private memberOf(node: NodeSpec, member: string, site: Site): ValueType | undefined {
    if (member === 'output') {
      if (!this.loopsAround(site).includes(node.id)) return this.ofNode(node)
      return isRepeat(node)
        ? members({ previous: this.ofTurnBefore(node), index: INTEGER })
        : members({ item: this.ofItems(node), index: INTEGER, count: INTEGER })
    }
    if (member === 'error') return errorOf(node.type)
    if (member === 'status') return oneOf(NODE_STATUSES)
    if (member !== 'handle') return undefined
    const handles = findNodeType(node.type)?.handles(node.config)
    return handles ? oneOf(handles.map(({ name }) => name)) : TEXT
  }

  private itemOf(site: Site): ValueType {
    const { reader } = site
    if (reader && site.perItem && !isLoop(reader)) return this.ofItems(reader)
    const node = this.innermost(site, (loop) => !isRepeat(loop))
    return node ? this.ofItems(node) : UNKNOWN
  }

  private previousOf(site: Site): ValueType {
    const node = this.innermost(site, isRepeat)
    return node ? this.ofTurnBefore(node) : UNKNOWN
  }

  private innermost(site: Site, wanted: (loop: NodeSpec) => boolean): NodeSpec | undefined {
    return this.loopsAround(site)
      .flatMap((id) => this.nodes.get(id) ?? [])
      .find(wanted)
  }

  /** What a turn reads as `previous`: `initial`, or the result of a turn. */
  private ofTurnBefore(loop: NodeSpec): ValueType {
    const key = `previous of ${loop.id}`
    // The result of a turn may be made from that of the turn before.
    if (this.open.has(key)) return UNKNOWN
    this.open.add(key)
    const type = unionOf([this.ofValue(loop.config.initial ?? null, { reader: loop }), this.resultOf(loop)])
    this.open.delete(key)
    return type
  }

  /** The result of one item of a loop: its `output`, or that of the last node of the body. */
  private resultOf(loop: NodeSpec): ValueType {
    if (Object.hasOwn(loop.config, 'output'))
      return this.ofValue(loop.config.output, { reader: loop, perItem: true })
    const ends = this.endsOf(loop)
    return ends ? unionOf(ends.map((node) => this.ofNode(node))) : UNKNOWN
  }

  /** The nodes of which one completes last in the body of a loop; undefined if that is not known. */
  private endsOf(loop: NodeSpec): readonly NodeSpec[] | undefined {
    // Kept: every placeholder of a body may read the result of its turn before.
    const known = this.ends.get(loop.id)
    if (known) return known.nodes
    const inBody = this.definition.nodes.filter(({ id }) => this.bodies.around(id)[0] === loop.id)
    const ids = new Set(inBody.map(({ id }) => id))
    const edges = this.definition.edges.filter(({ from }) => ids.has(from))
    // Where a node may be skipped, or its failure handled, another one completes last.
    const isOpen =
      inBody.some(({ when, on_error }) => when !== undefined || on_error !== undefined) ||
      edges.some(({ handle }) => handle === 'error')
    const left = new Set(edges.map(({ from }) => from))
    const nodes = isOpen ? undefined : inBody.filter(({ id }) => !left.has(id))
    this.ends.set(loop.id, { nodes })
    return nodes
  }
}
