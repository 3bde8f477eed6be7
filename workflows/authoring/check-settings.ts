import type { Definition } from '../language/definition.ts'
import { parseDuration } from '../language/duration.ts'
import type { Problem } from '../language/problems.ts'

/** `expected_within` must be able to pass before the timeout ends the run. */
export function checkExpected({ settings }: Pick<Definition, 'settings'>): Problem[] {
  const { expected_within, timeout } = settings
  if (expected_within === undefined || timeout === undefined) return []
  if (parseDuration(expected_within)! < parseDuration(timeout)!) return []
  return [
    {
      code: 'conflicting_times',
      message: `a run ends after its timeout, ${timeout}, before it can be late`,
      path: '/settings/expected_within',
      hint: 'write a shorter duration than the timeout',
    },
  ]
}
