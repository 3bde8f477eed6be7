import {
  Client,
  Connection,
  type ConnectionLike,
  type ConnectionOptions,
  WorkflowNotFoundError,
} from '@temporalio/client'

/** No workflow has this id. */
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
    // The reason is in the cause: the client's own message only says that the call failed.
    throw error instanceof Error && error.cause ? error.cause : error
  }
}

/** The same by a connection of its own; `milliseconds` are for the connection and again for the answer. */
export async function requireTemporal(
  options: ConnectionOptions,
  namespace: string,
  milliseconds: number,
): Promise<void> {
  // Without the client's retries: they go on until the deadline, whose error then hides the reason.
  const connection = await Connection.connect({ ...options, connectTimeout: milliseconds, interceptors: [] })
  try {
    await requireTemporalAnswers(connection, namespace, milliseconds)
  } finally {
    await connection.close()
  }
}
