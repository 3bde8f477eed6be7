import { ConfigError } from '../model/config-error.ts'
import type { System } from '../postgres/tenancy.ts'

/** A namespace of a Temporal server, by the ids that both report; an id is empty if the server does not report it. */
export interface TemporalServer {
  /** Informational: a namespace that fails over to another cluster keeps its id. */
  cluster_id: string
  namespace_id: string
  namespace: string
}

/**
 * Checks that this database belongs to this Temporal namespace. The first worker assigns it: in another namespace,
 * every running run would look lost. `adopt` assigns the database to the given namespace; the sweep then resumes the
 * runs that it lacks.
 * @returns false if the server does not report the id of its namespace. Throws ConfigError.
 */
export async function requireTemporalServer(
  system: System,
  found: TemporalServer,
  adopt: boolean,
): Promise<boolean> {
  if (found.namespace_id === '') return false
  const change = adopt
    ? 'update set cluster_id = :cluster_id, namespace_id = :namespace_id, namespace = :namespace'
    : 'nothing'
  await system.raw(
    `insert into temporal_server (cluster_id, namespace_id, namespace)
     values (:cluster_id, :namespace_id, :namespace) on conflict (only_row) do ${change}`,
    { ...found },
  )
  const known = await system('temporal_server').first<TemporalServer>(
    'cluster_id',
    'namespace_id',
    'namespace',
  )
  if (known.namespace_id === found.namespace_id) return true
  throw new ConfigError(
    `the database belongs to another Temporal server: namespace ${known.namespace} (${known.namespace_id}) of cluster ` +
      `${known.cluster_id}, not ${found.namespace} (${found.namespace_id}) of cluster ${found.cluster_id}; correct ` +
      'TEMPORAL_ADDRESS or TEMPORAL_NAMESPACE, or, if the other one is gone for good, start once with TEMPORAL_ADOPT=true',
  )
}
