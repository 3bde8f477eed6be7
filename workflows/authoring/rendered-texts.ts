import type { NodeSpec } from '../language/definition.ts'
import { pointer } from '../language/problems.ts'
import { cancelSpecs } from './cancel-on.ts'
import { keysOf } from './keys.ts'
import type { Lowered } from './lower.ts'

/** A text that a run renders. */
export interface RenderedText {
  text: string
  /** Its JSON Pointer. A function, because few are needed. */
  path(): string
  /** Absent for an output of the workflow. */
  node?: NodeSpec
  /** The top-level key of the config that it is in; absent for `when`. */
  configKey?: string
  /** It is the `when` of a rule of `cancel_on`. */
  isCancel?: true
}

/** Every text that is rendered for a run: in configs, in `when`, in outputs, in keys and in `cancel_on`. */
export function* renderedTexts({ definition, texts, nodePath }: Lowered): Generator<RenderedText> {
  for (const node of definition.nodes) {
    for (const { text, path } of texts.of(node.config))
      yield {
        text,
        path: () => `${nodePath(node.id)}/config${pointer(...path)}`,
        node,
        configKey: String(path[0]),
      }
    if (node.when !== undefined) yield { text: node.when, path: () => `${nodePath(node.id)}/when`, node }
  }
  for (const { text, path } of texts.of(definition.outputs))
    yield { text, path: () => `/outputs${pointer(...path)}` }
  for (const { text, path } of keysOf(definition.settings)) yield { text, path: () => path }
  for (const { spec, path } of cancelSpecs(definition.settings))
    if (spec.when !== undefined) yield { text: spec.when, path: () => `${path}/when`, isCancel: true }
}
