import { references } from '../expressions/references.ts'
import { SECRETS_ROOT, settingNamed } from '../expressions/secrets.ts'
import { pointer } from './errors.ts'
import type { Lowered } from './lower.ts'
import { textsIn } from './texts.ts'
import type { SettingReference } from './types.ts'

const ROOTS = [SECRETS_ROOT, 'env'] as const

/** Every secret and every setting that a definition reads without a default. */
export function settingReferences({ definition, nodePath }: Lowered): SettingReference[] {
  const { nodes, outputs, trigger } = definition
  return [
    ...nodes.flatMap(({ id, config, when }) => [
      ...inValue(config, `${nodePath(id)}/config`, id),
      ...inValue(when, `${nodePath(id)}/when`, id),
    ]),
    ...inValue(outputs, '/outputs'),
    ...(trigger.type === 'event' ? inValue(trigger.when, '/trigger/when') : []),
  ]
}

const inValue = (value: unknown, at: string, node_id?: string): SettingReference[] =>
  textsIn(value).flatMap(({ text, path }) =>
    inText(text, { path: at + pointer(...path), ...(node_id === undefined ? {} : { node_id }) }),
  )

function inText(text: string, place: Pick<SettingReference, 'path' | 'node_id'>): SettingReference[] {
  // To parse a placeholder takes longer.
  if (!ROOTS.some((root) => text.includes(root))) return []
  try {
    return references(text).flatMap((reference) => {
      const root = ROOTS.find((one) => one === reference.path[0])
      const name = settingNamed(reference)
      return root === undefined || name === undefined || reference.optional ? [] : [{ root, name, ...place }]
    })
  } catch {
    // Reported by checkReferences.
    return []
  }
}
