import { listed, type Port } from './define.ts'

/** JavaScript of a tenant, in a sandbox without access to anything. */
export interface Sandbox {
  /** Runs the code as the body of an async function of `inputs`. Throws NodeError. */
  run(program: SandboxProgram): Promise<SandboxResult>
}

export interface SandboxProgram {
  code: string
  inputs: Record<string, unknown>
  /** The seed of the random numbers, the same for each attempt. */
  seed: string
  /** The only time that the code sees. */
  now: Date
}

export interface SandboxResult {
  /** The returned value, as JSON represents it; null if the code returned nothing. */
  result: unknown
  /** The lines that the code wrote with `console`. */
  log: string[]
}

export const sandbox: Port<Sandbox> = {
  classes: ['external'],
  scoped: false,
  words: {
    run: {
      call: ({ code, inputs }) =>
        [`running ${code.split('\n').length} lines of code`, ...listed('inputs', Object.keys(inputs))].join(
          ', ',
        ),
      result: ({ log }) => `the code has ended, with ${log.length} lines of log`,
    },
  },
}
