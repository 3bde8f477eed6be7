import { v5 as uuidv5 } from 'uuid'
import type { Admission } from '../../../workflows/language/definition.ts'
import { render, type Scope } from '../../../workflows/language/expressions/liquid.ts'
import { NodeError } from '../../../workflows/language/node-error.ts'
import { RUN_KEY, TRIGGER_WHEN } from '../../../workflows/shared/limits.ts'
import { isStorable } from '../../../workflows/shared/storable-text.ts'

/** The rendered keys of a run; a setting without a key has none. */
export interface RunKeys {
  concurrency?: string
  debounce?: string
  rate?: string
}

/** Renders the keys of a run. Returns the reason if one of them cannot divide runs. */
export function renderKeys(admission: Admission, scope: Scope): RunKeys | NodeError {
  const keys: RunKeys = {}
  for (const name of ['concurrency', 'debounce', 'rate'] as const) {
    const template = admission[name]?.key
    if (template === undefined) continue
    const key = renderKey(template, scope)
    if (typeof key !== 'string')
      return new NodeError('invalid_key', `settings.${name}.key ${template} ${key.reason}`)
    keys[name] = key
  }
  return keys
}

function renderKey(template: string, scope: Scope): string | { reason: string } {
  let value: unknown
  try {
    value = render(template, scope, TRIGGER_WHEN)
  } catch (error) {
    if (error instanceof NodeError) return { reason: `cannot be rendered: ${error.message}` }
    throw error
  }
  if (value === null || value === undefined || String(value).trim() === '')
    return { reason: 'renders to nothing' }
  if (!['string', 'number', 'boolean'].includes(typeof value))
    return { reason: 'renders to an object or a list' }
  const text = String(value)
  if (!isStorable(text)) return { reason: 'renders to a text with NUL or half of a character' }
  if (text.length <= RUN_KEY.rendered) return text
  return { reason: `renders to ${text.length} characters, at most ${RUN_KEY.rendered} are allowed` }
}

/** A key of a workflow as an id of fixed size. Without a key all runs of the workflow have the same. */
export const keyId = (workflowId: string, key = ''): string => uuidv5(key, workflowId)
