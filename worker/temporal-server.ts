import type { NativeConnection } from '@temporalio/worker'
import type { TemporalServer } from '../db/runs/temporal-server.ts'

/**
 * The namespace that a connection leads to. What the server does not tell this client, because its token is for the
 * namespace only, is an empty text.
 */
export async function describeTemporalServer(
  { workflowService }: Pick<NativeConnection, 'workflowService'>,
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
