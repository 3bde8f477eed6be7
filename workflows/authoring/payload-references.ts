import type { PayloadReference } from '../language/definition.ts'
import type { Lowered } from './lower.ts'
import { renderedTexts } from './rendered-texts.ts'

/** Every value of `trigger.payload` that a workflow of incoming webhooks reads without a default. */
export function payloadReferences(lowered: Lowered): PayloadReference[] {
  const { definition, texts } = lowered
  if (definition.trigger.type !== 'webhook') return []
  return [...renderedTexts(lowered)].flatMap(({ text, path, node }) => {
    // Parsing the placeholders takes longer.
    if (!text.includes('payload')) return []
    return texts
      .readable(text)
      .flatMap(({ path: [root, member, ...keys], optional }) =>
        root === 'trigger' && member === 'payload' && keys.length > 0 && !optional
          ? [{ keys, path: path(), ...(node && { node_id: node.id }) }]
          : [],
      )
  })
}
