import type { Sandbox } from '../../workflows/effects/sandbox.ts'
import type { CodeRunner } from '../sandbox/runner.ts'
import type { EffectHost } from './define.ts'

/** Code of the organization, which takes turns with others. A process without a runner runs none. */
export const sandboxOf = (
  runner: CodeRunner | undefined,
  { organizationId, signal, hold }: EffectHost,
): Sandbox => ({
  async run(program) {
    if (!runner) throw new Error('this process runs no code of tenants')
    return runner.run(organizationId, program, { signal, hold })
  },
})
