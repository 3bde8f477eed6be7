import type { NativeConnection } from '@temporalio/worker'
import type { TemporalServer } from '../db/runs/temporal-server.ts'

/** The namespace that a connection leads to. */
export async function describeTemporalServer(
  { workflowService }: Pick<NativeConnection, 'workflowService'>,
  namespace: string,
): Promise<TemporalServer> {
  const [{ clusterId }, { namespaceInfo }] = await Promise.all([
    workflowService.getClusterInfo({}),
    workflowService.describeNamespace({ namespace }),
  ])
  return { cluster_id: clusterId ?? '', namespace_id: namespaceInfo?.id ?? '', namespace }
}
