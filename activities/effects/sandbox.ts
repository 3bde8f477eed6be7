import type { Sandbox } from '../../workflows/effects/sandbox.ts'
import type { CodeRunner } from '../sandbox/runner.ts'
import type { EffectHost } from './define.ts'

/** Runs code of the organization, in turn with others. Throws NodeError in a process without a runner. */
export const sandboxOf = (
  runner: CodeRunner | undefined,
  { organizationId, signal, hold, reach }: EffectHost,
): Sandbox => ({
  async run(program) {
    if (!runner) throw new Error('this process runs no code of tenants')
    reach('code')
    return runner.run(organizationId, program, { signal, hold })
  },
})
