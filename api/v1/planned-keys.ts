import { z } from 'zod'
import { type RunKeys, renderKeys } from '../../db/model/runs/run-keys.ts'
import type { Program } from '../../workflows/language/definition.ts'
import type { Scope } from '../../workflows/language/expressions/liquid.ts'
import { NodeError } from '../../workflows/language/node-error.ts'

export const runKeys = z
  .object({
    concurrency: z.string().optional(),
    debounce: z.string().optional(),
    rate: z.string().optional(),
  })
  .meta({ description: 'The rendered keys of the settings of its workflow that have one.' })

/** The keys of a run that was not started yet, and what its settings do with it. */
export function plannedKeys({ settings }: Program, scope: Scope): { keys: RunKeys; notes: string[] } {
  const { admission } = settings
  if (!admission) return { keys: {}, notes: [] }
  const keys = renderKeys(admission, scope)
  if (keys instanceof NodeError) return { keys: {}, notes: [`The run would fail: ${keys.message}.`] }
  const { debounce, rate, concurrency } = admission
  const ofKey = (name: keyof RunKeys) => (keys[name] === undefined ? '' : ` of the key ${keys[name]}`)
  return {
    keys,
    notes: [
      ...(debounce
        ? [
            `Starts once no other run${ofKey('debounce')} was started for ${seconds(debounce.for_ms)}, in whose place it would be skipped (settings.debounce).`,
          ]
        : []),
      ...(rate
        ? [
            `At most ${rate.limit} runs${ofKey('rate')} start within ${seconds(rate.per_ms)}; others ${rate.policy === 'skip' ? 'are skipped' : 'wait'} (settings.rate).`,
          ]
        : []),
      ...(concurrency
        ? [
            `At most ${concurrency.limit} runs${ofKey('concurrency')} at a time, policy ${concurrency.policy} (settings.concurrency).`,
          ]
        : []),
    ],
  }
}

const seconds = (ms: number) => `${ms / 1_000} s`
