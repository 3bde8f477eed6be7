import type { NodeSpec } from '../language/definition.ts'
import { filteredBy } from '../language/expressions/translate.ts'
import { writeInstead } from '../language/problems.ts'
import { optionsOf, type ValueType } from '../language/value-types.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'
import type { Types } from './types.ts'

/** The roots of values that people outside of the organization write. */
const FOREIGN = ['trigger', 'inputs', 'item']
/** The members of `trigger` that the service, or the organization itself, has written. */
const OWN_OF_TRIGGER = [
  'type',
  'event',
  'run',
  'node',
  'webhook',
  'action',
  'scheduled_at',
  'cron',
  'every',
  'timezone',
]
const PLACEHOLDER = /\{\{[^{}]*\}\}/g

/** A placeholder whose value others have written, and which no filter makes safe, in the config of a node. */
export interface OpenPlaceholder {
  written: string
  node: NodeSpec
  path: readonly PropertyKey[]
}

/** What a check takes for open. */
export interface Openness {
  /** The filters after which a value is safe. */
  safe: readonly string[]
  /** Whether a value of this type can be unsafe. */
  isFree(type: ValueType): boolean
  /** Only placeholders within texts that have this, such as a tag of HTML, are open. Default: all. */
  within?: string
}

/** Finds the texts of others in a text, also through nodes that copy texts. */
export class ForeignTexts {
  private readonly lowered: Lowered
  private readonly types: Types
  private readonly nodes: ReadonlyMap<string, NodeSpec>

  constructor(lowered: Lowered, types: Types) {
    this.lowered = lowered
    this.types = types
    this.nodes = new Map(lowered.definition.nodes.map((node) => [node.id, node]))
  }

  /** The first one in the text at a path of the config of a node. */
  firstIn(
    node: NodeSpec,
    path: readonly PropertyKey[],
    text: string,
    how: Openness,
  ): OpenPlaceholder | undefined {
    return this.search({ node, path, text }, how, false, new Set())
  }

  private search(
    { node, path, text }: { node: NodeSpec; path: readonly PropertyKey[]; text: string },
    how: Openness,
    isWithin: boolean,
    seen: Set<string>,
  ): OpenPlaceholder | undefined {
    const here = isWithin || how.within === undefined || text.includes(how.within)
    for (const written of text.match(PLACEHOLDER) ?? []) {
      const [part] = this.lowered.texts.parts(written) ?? []
      if (!part || typeof part === 'string' || part.filters.some(({ name }) => how.safe.includes(name)))
        continue
      const references = this.lowered.texts.readable(written)
      const open = { written, node, path }
      if (
        here &&
        references.some(({ path: read }) => isForeign(read)) &&
        this.isFree(written, node, path, how)
      )
        return open
      for (const { path: read } of references) {
        const found = this.searchCopied(read.map(String), how, here, seen)
        // Plain text is made safe where it is put into what needs it.
        if (found) return found.isPlain ? open : found.open
      }
    }
    return undefined
  }

  /** Follows `nodes.<id>.output.<…>` into the texts that the node copies. */
  private searchCopied(
    [root, id, member, ...rest]: readonly string[],
    how: Openness,
    isWithin: boolean,
    seen: Set<string>,
  ): { open: OpenPlaceholder; isPlain: boolean } | undefined {
    const source = root === 'nodes' && member === 'output' ? this.nodes.get(id!) : undefined
    const type = source && findNodeType(source.type)
    if (!source || !type) return undefined
    for (const path of type.copies(source.config, rest)) {
      const text = path.reduce<unknown>(
        (value, key) => (value as Record<PropertyKey, unknown>)?.[key],
        source.config,
      )
      const key = JSON.stringify([source.id, path])
      if (typeof text !== 'string' || seen.has(key)) continue
      seen.add(key)
      const open = this.search({ node: source, path, text }, how, isWithin, seen)
      if (open) return { open, isPlain: how.within === undefined || !text.includes(how.within) }
    }
    return undefined
  }

  private isFree(
    text: string,
    reader: NodeSpec,
    path: readonly PropertyKey[],
    { isFree }: Openness,
  ): boolean {
    const perItem = findNodeType(reader.type)?.perItem(reader.config).includes(String(path[0])) ?? false
    return optionsOf(this.types.ofText(text, { reader, perItem })).some(isFree)
  }
}

const isForeign = ([root, member]: readonly (string | number)[]): boolean =>
  FOREIGN.includes(String(root)) && (root !== 'trigger' || !OWN_OF_TRIGGER.includes(String(member)))

/** Whether a value can be any text, as far as its type says. */
export const isAnyText = ({
  type,
  format,
  enum: values,
  pattern,
  ...rest
}: ValueType & { pattern?: string }) =>
  (type === undefined && values === undefined && Object.keys(rest).length === 0) ||
  (type === 'string' && format === undefined && values === undefined && pattern === undefined)

/** The hint to add a filter to a placeholder. */
export const addFilter = (placeholder: string, filter: string): string =>
  writeInstead(filteredBy(placeholder, filter), placeholder)
