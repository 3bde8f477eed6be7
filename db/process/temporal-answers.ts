import {
  Client,
  Connection,
  type ConnectionLike,
  type ConnectionOptions,
  WorkflowNotFoundError,
} from '@temporalio/client'

/** A workflow id that does not exist. */
const NOBODY = 'health-check'

/**
 * Throws unless Temporal reads from its database within `milliseconds`. A server whose database fails still accepts
 * connections and answers from its caches (its capabilities, namespaces); the current run of a workflow id is read from
 * the database in each call.
 */
export async function requireTemporalAnswers(
  connection: ConnectionLike,
  namespace: string,
  milliseconds: number,
): Promise<void> {
  const { workflow } = new Client({ connection, namespace })
  try {
    await connection.withDeadline(Date.now() + milliseconds, () => workflow.getHandle(NOBODY).describe())
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return
    // The client's own message only says that the call failed; the reason is in the cause.
    throw error instanceof Error && error.cause ? error.cause : error
  }
}

/** The same through a separate connection. `milliseconds` apply to the connection, and again to the response. */
export async function requireTemporal(
  options: ConnectionOptions,
  namespace: string,
  milliseconds: number,
): Promise<void> {
  // Without the client's retries: they continue until the deadline, whose error then hides the reason.
  const connection = await Connection.connect({ ...options, connectTimeout: milliseconds, interceptors: [] })
  try {
    await requireTemporalAnswers(connection, namespace, milliseconds)
  } finally {
    await connection.close()
  }
}
