import { SECRETS_ROOT, settingNamed } from '../expressions/secrets.ts'
import { pointer } from './errors.ts'
import type { Lowered } from './lower.ts'
import type { SettingReference } from './types.ts'

const ROOTS = [SECRETS_ROOT, 'env'] as const

/** Every secret and every setting that a definition reads without a default. */
export function settingReferences({ definition, texts, nodePath }: Lowered): SettingReference[] {
  const { nodes, outputs, trigger } = definition
  const found: SettingReference[] = []
  const read = (text: string, path: () => string, node_id?: string) => {
    // To parse a placeholder takes longer.
    if (!ROOTS.some((root) => text.includes(root))) return
    for (const reference of texts.readable(text)) {
      const root = ROOTS.find((one) => one === reference.path[0])
      const name = settingNamed(reference)
      if (root === undefined || name === undefined || reference.optional) continue
      found.push({ root, name, path: path(), ...(node_id === undefined ? {} : { node_id }) })
    }
  }
  for (const { id, config, when } of nodes) {
    for (const { text, path } of texts.of(config))
      read(text, () => `${nodePath(id)}/config${pointer(...path)}`, id)
    if (when !== undefined) read(when, () => `${nodePath(id)}/when`, id)
  }
  for (const { text, path } of texts.of(outputs)) read(text, () => `/outputs${pointer(...path)}`)
  if (trigger.type === 'event' && trigger.when !== undefined) read(trigger.when, () => '/trigger/when')
  return found
}
