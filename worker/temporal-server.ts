import type { NativeConnection } from '@temporalio/worker'
import type { System } from '../db/postgres/tenancy.ts'
import type { Logger } from '../db/process/log.ts'
import { requireTemporalServer, type TemporalServer } from '../db/runs/temporal-server.ts'

type Connection = Pick<NativeConnection, 'workflowService'>

/** Checks at each connection of a process that the database belongs to its namespace. */
export class ServerCheck {
  private told = false
  private readonly deps: { system: System; log: Logger; namespace: string; adopt: boolean }

  constructor(deps: ServerCheck['deps']) {
    this.deps = deps
  }

  /**
   * Throws ConfigError if it belongs to another one. Warns once if the server does not tell, however often it is asked.
   */
  async require(connection: Connection): Promise<void> {
    const { system, log, namespace, adopt } = this.deps
    const server = await describeTemporalServer(connection, namespace)
    if ((await requireTemporalServer(system, server, adopt)) || this.told) return
    this.told = true
    log.warn(
      { namespace },
      'Temporal does not tell the id of its namespace: it cannot be checked that the database belongs to it',
    )
  }
}

/**
 * The namespace that a connection leads to. What the server does not tell this client, because its token is for the
 * namespace only, is an empty text.
 */
export async function describeTemporalServer(
  { workflowService }: Connection,
  namespace: string,
): Promise<TemporalServer> {
  const [cluster, described] = await Promise.all([
    unlessRefused(workflowService.getClusterInfo({})),
    unlessRefused(workflowService.describeNamespace({ namespace })),
  ])
  return {
    cluster_id: cluster?.clusterId ?? '',
    namespace_id: described?.namespaceInfo?.id ?? '',
    namespace,
  }
}

/** The status PERMISSION_DENIED of gRPC. */
export const PERMISSION_DENIED = 7

/** The answer to a call; undefined if this client may not make it. */
async function unlessRefused<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if ((error as { code?: unknown }).code === PERMISSION_DENIED) return undefined
    throw error
  }
}
