import type { ChildEnd, RunError } from './run-state.ts'

/** The output of a node whose child run has ended, and its error if that run did not complete. */
export function resultOfChild({ workflow_name, ...child }: ChildEnd): { output: unknown; error?: RunError } {
  const { run_id, workflow_id, status, outputs, error } = child
  const output = { run_id, workflow_id, status, outputs }
  if (status === 'completed') return { output }
  const reason = error ? `: ${error.message}` : '.'
  const message = `The run of ${workflow_name} is ${status}${reason}`.slice(0, 2_000)
  return { output, error: { code: 'child_run_failed', message, details: { run_id, status, error } } }
}
