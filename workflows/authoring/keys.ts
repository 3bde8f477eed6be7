import type { Definition } from '../language/definition.ts'

/** The settings whose key divides the runs of a workflow. */
const KEYED = ['concurrency', 'debounce', 'rate'] as const

/** The roots that a key can read: there is no run yet. */
export const KEY_ROOTS = ['trigger', 'inputs', 'org', 'env']

/** The keys of the settings, which are rendered for each run before it is queued. */
export const keysOf = (settings: Definition['settings']): { text: string; path: string }[] =>
  KEYED.flatMap((name) => {
    const setting = settings[name]
    const text = typeof setting === 'object' ? setting.key : undefined
    return text === undefined ? [] : [{ text, path: `/settings/${name}/key` }]
  })
