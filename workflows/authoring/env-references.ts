import type { EnvReference } from '../language/definition.ts'
import { envNamed, SECRETS_ROOT } from '../language/expressions/secrets.ts'
import type { Lowered } from './lower.ts'
import { renderedTexts } from './rendered-texts.ts'

const ROOTS = [SECRETS_ROOT, 'env'] as const

/** Every secret and every environment variable that a definition reads without a default. */
export function envReferences(lowered: Lowered): EnvReference[] {
  const { definition, texts } = lowered
  const found: EnvReference[] = []
  const read = (text: string, path: () => string, node_id?: string) => {
    // Parsing the placeholders takes longer.
    if (!ROOTS.some((root) => text.includes(root))) return
    for (const reference of texts.readable(text)) {
      const root = ROOTS.find((one) => one === reference.path[0])
      const name = envNamed(reference)
      if (root === undefined || name === undefined || reference.optional) continue
      found.push({ root, name, path: path(), ...(node_id === undefined ? {} : { node_id }) })
    }
  }
  for (const { text, path, node } of renderedTexts(lowered)) read(text, path, node?.id)
  const { trigger } = definition
  if (trigger.type === 'event' && trigger.when !== undefined) read(trigger.when, () => '/trigger/when')
  return found
}
