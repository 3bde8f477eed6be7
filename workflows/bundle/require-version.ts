/**
 * Throws if a newer worker has started the workflow: this worker's code would issue other commands than the history
 * has. The error fails the workflow task, not the workflow: Temporal retries the task until a newer worker takes it.
 *
 * @param started the version of the workflow's code that it was started with.
 * @param known the newest version that this worker has.
 */
export function requireVersion(started: number, known: number): void {
  if (started > known)
    throw new Error(
      `The workflow has version ${started}, and this worker knows only ${known}: it needs a newer worker.`,
    )
}
